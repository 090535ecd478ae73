-- title: Amplitudes of three qubits from |000>: Hadamard, T, Hadamard on the first, then two controlled nots
-- relation: H c128[o=2 i=2] values 0.7071067811865476 0.7071067811865476 0.7071067811865476 -0.7071067811865476
-- relation: T c128[o=2 i=2] values 1 0 0 0.7071067811865476+0.7071067811865476j
-- relation: CX c128[o1=2 o2=2 i1=2 i2=2] values 1 0 0 0 0 1 0 0 0 0 0 1 0 0 1 0
SELECT x.o1 AS a, y.o1 AS b, y.o2 AS c, SUM(g.val * t.val * h.val * x.val * y.val) AS val
FROM H AS g
JOIN T AS t ON g.o = t.i
JOIN H AS h ON t.o = h.i
JOIN CX AS x ON h.o = x.i1
JOIN CX AS y ON x.o2 = y.i1
WHERE g.i = 0 AND x.i2 = 0 AND y.i2 = 0
GROUP BY x.o1, y.o1, y.o2
---- logical
LOGICAL   4 einsums   0 maps   120 FLOP   output e7 c128[a=2 b=2 c=2] sparse

CX  := input                                         c128[o1=2 o2=2 i1=2 i2=2]         256 B
e1  := filter i2 == 0  CX                            c128[o1=2 o2=2 i1=2 i2=2] sparse  256 B
e2  := filter i2 == 0  CX                            c128[o1=2 o2=2 i1=2 i2=2] sparse  256 B
H   := input                                         c128[o=2 i=2]                      64 B
e3  := filter i == 0  H                              c128[o=2 i=2] sparse               64 B
T   := input                                         c128[o=2 i=2]                      64 B
e4  := einsum [o i],[o2 o]->[o2] e3, T               c128[o2=2] sparse                  32 B  16 FLOP
e5  := einsum [o3 o2],[o2]->[o3] H, e4               c128[o3=2] sparse                  32 B   8 FLOP
e6  := einsum [a o22 o3 i2],[o3]->[a o22] e2, e5     c128[a=2 o22=2] sparse             64 B  32 FLOP
e7  := einsum [b c o22 i22],[a o22]->[a b c] e1, e6  c128[a=2 b=2 c=2] sparse          128 B  64 FLOP
---- relational
EXPLAIN   1 device   7 kernel calls   0 exchanges   moves 0 B   peak 800 B per device

operator                                                       keys           rows  block                             placement  cost
e7: Aggregate sum by (a b c)                                   a b c             1  c128[a=2 b=2 c=2] masked          Single
└─ Join on (o22)  contract [b c o22 i22],[a o22]->[a b c]      a b c o22 i22     1                                    Single     1 call  64 FLOP
   ├─ e1: Filter i2 == 0                                       o1 o2 i1 i2       1  c128[o1=2 o2=2 i1=2 i2=2] masked  Single     1 call
   │  └─ Scan CX                                               o1 o2 i1 i2       1  c128[o1=2 o2=2 i1=2 i2=2]         Single
   └─ e6: Aggregate sum by (a o22)                             a o22             1  c128[a=2 o22=2] masked            Single
      └─ Join on (o3)  contract [a o22 o3 i2],[o3]->[a o22]    a o22 o3 i2       1                                    Single     1 call  32 FLOP
         ├─ e2: Filter i2 == 0                                 o1 o2 i1 i2       1  c128[o1=2 o2=2 i1=2 i2=2] masked  Single     1 call
         │  └─ Scan CX                                         o1 o2 i1 i2       1  c128[o1=2 o2=2 i1=2 i2=2]         Single
         └─ e5: Aggregate sum by (o3)                          o3                1  c128[o3=2] masked                 Single
            └─ Join on (o2)  contract [o3 o2],[o2]->[o3]       o3 o2             1                                    Single     1 call  8 FLOP
               ├─ Scan H                                       o i               1  c128[o=2 i=2]                     Single
               └─ e4: Aggregate sum by (o2)                    o2                1  c128[o2=2] masked                 Single
                  └─ Join on (o)  contract [o i],[o2 o]->[o2]  o2 o i            1                                    Single     1 call  16 FLOP
                     ├─ e3: Filter i == 0                      o i               1  c128[o=2 i=2] masked              Single     1 call
                     │  └─ Scan H                              o i               1  c128[o=2 i=2]                     Single
                     └─ Scan T                                 o i               1  c128[o=2 i=2]                     Single
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0,
  x0.k1,
  x0.k2,
  x0.k3,
  BLOCK_KEEP('o1 o2 i1 i2', 'i2 == 0', x0.block) AS block
FROM CX AS x0;

CREATE TEMPORARY TABLE e2 AS
SELECT
  x0.k0,
  x0.k1,
  x0.k2,
  x0.k3,
  BLOCK_KEEP('o1 o2 i1 i2', 'i2 == 0', x0.block) AS block
FROM CX AS x0;

CREATE TEMPORARY TABLE e3 AS
SELECT
  x0.k0,
  x0.k1,
  BLOCK_KEEP('o i', 'i == 0', x0.block) AS block
FROM H AS x0;

CREATE TEMPORARY TABLE e4 AS
SELECT
  x1.k0 AS k0,
  CONTRACT_SUM(
    '[o i],[o2 o]->[o2]',
    LIST(x0.block ORDER BY x0.k0, x0.k1),
    LIST(x1.block ORDER BY x0.k0, x0.k1)
  ) AS block
FROM e3 AS x0
JOIN T AS x1
  ON x0.k0 = x1.k1
GROUP BY
  x1.k0;

DROP TABLE e3;

CREATE TEMPORARY TABLE e5 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM('[o3 o2],[o2]->[o3]', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM H AS x0
JOIN e4 AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0;

DROP TABLE e4;

CREATE TEMPORARY TABLE e6 AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  CONTRACT_SUM(
    '[a o22 o3 i2],[o3]->[a o22]',
    LIST(x0.block ORDER BY x0.k2, x0.k3),
    LIST(x1.block ORDER BY x0.k2, x0.k3)
  ) AS block
FROM e2 AS x0
JOIN e5 AS x1
  ON x0.k2 = x1.k0
GROUP BY
  x0.k0,
  x0.k1;

DROP TABLE e2;

DROP TABLE e5;

CREATE TEMPORARY TABLE e7 AS
SELECT
  x1.k0 AS k0,
  x0.k0 AS k1,
  x0.k1 AS k2,
  CONTRACT_SUM(
    '[b c o22 i22],[a o22]->[a b c]',
    LIST(x0.block ORDER BY x0.k2, x0.k3),
    LIST(x1.block ORDER BY x0.k2, x0.k3)
  ) AS block
FROM e1 AS x0
JOIN e6 AS x1
  ON x0.k2 = x1.k1
GROUP BY
  x1.k0,
  x0.k0,
  x0.k1;

DROP TABLE e1;

DROP TABLE e6;

SELECT * FROM e7;
---- program
program on host:0   7 kernel calls   0 exchanges   moves 0 bytes   peak 800 bytes per device

pipeline 0
  %0  = scan "CX"  ->  c128[o1=2 o2=2 i1=2 i2=2] Single  "CX"
        rows 1   calls 0   moved 0   held 256
  %1  = filter %0 where i2 == 0  ->  c128[o1=2 o2=2 i1=2 i2=2] cells Single  "e1"
        rows 1   calls 1   moved 0   held 272
  %2  = filter %0 where i2 == 0  ->  c128[o1=2 o2=2 i1=2 i2=2] cells Single  "e2"
        rows 1   calls 1   moved 0   held 272
        free %0
  %3  = scan "H"  ->  c128[o=2 i=2] Single  "H"
        rows 1   calls 0   moved 0   held 64
  %4  = filter %3 where i == 0  ->  c128[o=2 i=2] cells Single  "e3"
        rows 1   calls 1   moved 0   held 68
  %5  = scan "T"  ->  c128[o=2 i=2] Single  "T"
        rows 1   calls 0   moved 0   held 64
  %6  = join %4, %5 sum [o i],[o2 o]->[o2] x0 * x1 over (o2=2 o=2 i=2) work Single  ->  c128[o2=2] cells Single  "e4"
        rows 1   calls 1   moved 0   held 34
        free %4 %5
  %7  = join %3, %6 sum [o3 o2],[o2]->[o3] x0 * x1 over (o3=2 o2=2) work Single  ->  c128[o3=2] cells Single  "e5"
        rows 1   calls 1   moved 0   held 34
        free %3 %6
  %8  = join %2, %7 sum [a o22 o3 i2],[o3]->[a o22] x0 * x1 over (a=2 o22=2 o3=2 i2=2) work Single  ->  c128[a=2 o22=2] cells Single  "e6"
        rows 1   calls 1   moved 0   held 68
        free %2 %7
  %9  = join %1, %8 sum [b c o22 i22],[a o22]->[a b c] x0 * x1 over (a=2 b=2 c=2 o22=2 i22=2) work Single  ->  c128[a=2 b=2 c=2] cells Single  "e7"
        rows 1   calls 1   moved 0   held 136
        free %1 %8

emit %9
