-- title: Matrix product, cut for four devices
-- relation: A f32[i=512 j=384]
-- relation: B f32[j=384 k=256]
-- devices: 4
-- parts: i=4 j=2
SELECT a.i, b.k, SUM(a.val * b.val) AS val
FROM A AS a JOIN B AS b ON a.j = b.j
GROUP BY a.i, b.k
---- logical
LOGICAL   1 einsum   0 maps   100.7 MFLOP   output e1 f32[i=512 k=256]

A   := input                  f32[i=512 j=384]  768.0 KiB
B   := input                  f32[j=384 k=256]  384.0 KiB
e1  := einsum ij,jk->ik A, B  f32[i=512 k=256]  512.0 KiB  100.7 MFLOP
---- relational
EXPLAIN   4 devices   8 kernel calls   0 exchanges   moves 0 B   peak 704.0 KiB per device

operator                            keys   rows  block             placement   cost
e1: Aggregate sum by (I k)          I k       4  f32[i=128 k=256]  Sharded(i)
└─ Join on (J)  contract ij,jk->ik  I k J     8                    Sharded(i)  8 calls  100.7 MFLOP
   ├─ Scan A                        I J       8  f32[i=128 j=192]  Sharded(i)
   └─ Scan B                        J k       2  f32[j=192 k=256]  Replicated
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('ij,jk->ik', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM A AS x0
JOIN B AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

SELECT * FROM e1;
---- program
program on host:0 host:1 host:2 host:3   8 kernel calls   0 exchanges   moves 0 bytes   peak 720896 bytes per device

pipeline 0
  %0  = scan "A"  ->  f32[i=512/4 j=384/2] Sharded(i)  "A"
        rows 8   calls 0   moved 0   held 196608 196608 196608 196608
  %1  = scan "B"  ->  f32[j=384/2 k=256] Replicated  "B"
        rows 2   calls 0   moved 0   held 393216 393216 393216 393216
  %2  = join %0, %1 sum ij,jk->ik x0 * x1 over (i=512/4 k=256 j=384/2) work Sharded(i)  ->  f32[i=512/4 k=256] Sharded(i)  "e1"
        rows 4   calls 8   moved 0   held 131072 131072 131072 131072
        free %0 %1

emit %2
