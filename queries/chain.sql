-- title: A chain of four matrices, in whatever order is cheapest
-- relation: A f64[a=200 b=300]
-- relation: B f64[b=300 c=40]
-- relation: C f64[c=40 d=250]
-- relation: D f64[d=250 e=60]
-- devices: 2
SELECT a.a, d.e, SUM(a.val * b.val * c.val * d.val) AS val
FROM A AS a JOIN B AS b ON a.b = b.b JOIN C AS c ON b.c = c.c JOIN D AS d ON c.d = d.d
GROUP BY a.a, d.e
---- logical
LOGICAL   3 einsums   0 maps   7.0 MFLOP   output e3 f64[a=200 e=60]

A   := input                    f64[a=200 b=300]  468.8 KiB
B   := input                    f64[b=300 c=40]    93.8 KiB
e1  := einsum ab,bc->ac A, B    f64[a=200 c=40]    62.5 KiB    4.8 MFLOP
C   := input                    f64[c=40 d=250]    78.1 KiB
D   := input                    f64[d=250 e=60]   117.2 KiB
e2  := einsum cd,de->ce C, D    f64[c=40 e=60]     18.8 KiB    1.2 MFLOP
e3  := einsum ac,ce->ae e1, e2  f64[a=200 e=60]    93.8 KiB  960.0 KFLOP
---- relational
EXPLAIN   2 devices   8 kernel calls   0 exchanges   moves 0 B   peak 359.4 KiB per device

operator                                  keys   rows  block             placement   cost
e3: Aggregate sum by (A e)                A e       2  f64[a=100 e=60]   Sharded(a)
└─ Join on (c)  contract ac,ce->ae        A e c     2                    Sharded(a)  2 calls  960.0 KFLOP
   ├─ e1: Aggregate sum by (A c)          A c       2  f64[a=100 c=40]   Sharded(a)
   │  └─ Join on (b)  contract ab,bc->ac  A c b     2                    Sharded(a)  2 calls  4.8 MFLOP
   │     ├─ Scan A                        A b       2  f64[a=100 b=300]  Sharded(a)
   │     └─ Scan B                        b c       1  f64[b=300 c=40]   Replicated
   └─ e2: Aggregate sum by (c e)          c e       1  f64[c=40 e=60]    Replicated
      └─ Join on (D)  contract cd,de->ce  c e D     4                    Replicated  4 calls  1.2 MFLOP
         ├─ Scan C                        c D       2  f64[c=40 d=125]   Replicated
         └─ Scan D                        D e       2  f64[d=125 e=60]   Replicated
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('ab,bc->ac', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM A AS x0
JOIN B AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

CREATE TEMPORARY TABLE e2 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('cd,de->ce', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM C AS x0
JOIN D AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

CREATE TEMPORARY TABLE e3 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('ac,ce->ae', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM e1 AS x0
JOIN e2 AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE e1;

DROP TABLE e2;

SELECT * FROM e3;
---- program
program on host:0 host:1   8 kernel calls   0 exchanges   moves 0 bytes   peak 368000 bytes per device

pipeline 0
  %0  = scan "A"  ->  f64[a=200/2 b=300] Sharded(a)  "A"
        rows 2   calls 0   moved 0   held 240000 240000
  %1  = scan "B"  ->  f64[b=300 c=40] Replicated  "B"
        rows 1   calls 0   moved 0   held 96000 96000
  %2  = join %0, %1 sum ab,bc->ac x0 * x1 over (a=200/2 c=40 b=300) work Sharded(a)  ->  f64[a=200/2 c=40] Sharded(a)  "e1"
        rows 2   calls 2   moved 0   held 32000 32000
        free %0 %1
  %3  = scan "C"  ->  f64[c=40 d=250/2] Replicated  "C"
        rows 2   calls 0   moved 0   held 80000 80000
  %4  = scan "D"  ->  f64[d=250/2 e=60] Replicated  "D"
        rows 2   calls 0   moved 0   held 120000 120000
  %5  = join %3, %4 sum cd,de->ce x0 * x1 over (c=40 e=60 d=250/2) work Replicated  ->  f64[c=40 e=60] Replicated  "e2"
        rows 1   calls 4   moved 0   held 19200 19200
        free %3 %4
  %6  = join %2, %5 sum ac,ce->ae x0 * x1 over (a=200/2 e=60 c=40) work Sharded(a)  ->  f64[a=200/2 e=60] Sharded(a)  "e3"
        rows 2   calls 2   moved 0   held 48000 48000
        free %2 %5

emit %6
