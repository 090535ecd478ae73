-- title: Two graph convolutions on the karate club, self loops included
-- relation: edges i64[src=34 dst=34] from networkx karate
-- relation: X f32[node=34 d=16]
-- relation: W1 f32[d=16 h=8] scale 0.25
-- relation: W2 f32[h=8 y=4] scale 0.35
WITH degree AS (
  SELECT src AS node, CAST(SUM(val) + 1 AS FLOAT) AS val FROM edges GROUP BY src
), adjacency AS (
  SELECT e.src, e.dst, CAST(e.val AS FLOAT) / SQRT(s.val * t.val) AS val
  FROM edges AS e JOIN degree AS s ON e.src = s.node JOIN degree AS t ON e.dst = t.node
), x1 AS (
  SELECT x.node, w.h, SUM(x.val * w.val) AS val
  FROM X AS x JOIN W1 AS w ON x.d = w.d
  GROUP BY x.node, w.h
), n1 AS (
  SELECT a.src AS node, x.h, SUM(a.val * x.val) AS val
  FROM adjacency AS a JOIN x1 AS x ON a.dst = x.node
  GROUP BY a.src, x.h
), hidden AS (
  SELECT n.node, n.h, CASE WHEN n.val + x.val / d.val > 0 THEN n.val + x.val / d.val ELSE 0 END AS val
  FROM n1 AS n JOIN x1 AS x ON n.node = x.node AND n.h = x.h JOIN degree AS d ON n.node = d.node
), x2 AS (
  SELECT x.node, w.y, SUM(x.val * w.val) AS val
  FROM hidden AS x JOIN W2 AS w ON x.h = w.h
  GROUP BY x.node, w.y
), n2 AS (
  SELECT a.src AS node, x.y, SUM(a.val * x.val) AS val
  FROM adjacency AS a JOIN x2 AS x ON a.dst = x.node
  GROUP BY a.src, x.y
)
SELECT n.node, n.y, n.val + x.val / d.val AS val
FROM n2 AS n JOIN x2 AS x ON n.node = x.node AND n.y = x.y JOIN degree AS d ON n.node = d.node
---- logical
LOGICAL   8 einsums   1 map   42.9 KFLOP   output e2 f32[node=34 y=4] sparse

edges      := input rows                                                                                                        i64[src=34 dst=34] sparse  9.0 KiB
e1         := einsum [node dst]->[node] edges                                                                                   i64[node=34] sparse          272 B   1.2 KFLOP
degree     := map f32(x0 + 1)  e1                                                                                               f32[node=34] sparse          136 B
adjacency  := einsum [src dst],[src],[dst]->[src dst] keep(f32(x0) / sqrt(x1 * x2)) edges, degree, degree                       f32[src=34 dst=34] sparse  4.5 KiB   2.3 KFLOP
X          := input                                                                                                             f32[node=34 d=16]          2.1 KiB
W1         := input                                                                                                             f32[d=16 h=8]                512 B
x1         := einsum [node d],[d h]->[node h] X, W1                                                                             f32[node=34 h=8]           1.1 KiB   8.7 KFLOP
n1         := einsum [node dst],[dst h]->[node h] adjacency, x1                                                                 f32[node=34 h=8] sparse    1.1 KiB  18.5 KFLOP
hidden     := einsum [node h],[node h],[node]->[node h] keep(case(x0 + x1 / x2 > f32(0), x0 + x1 / x2, f32(0))) n1, x1, degree  f32[node=34 h=8] sparse    1.1 KiB    544 FLOP
W2         := input                                                                                                             f32[h=8 y=4]                 128 B
x2         := einsum [node h],[h y]->[node y] hidden, W2                                                                        f32[node=34 y=4] sparse      544 B   2.2 KFLOP
n2         := einsum [node dst],[dst y]->[node y] adjacency, x2                                                                 f32[node=34 y=4] sparse      544 B   9.2 KFLOP
e2         := einsum [node y],[node y],[node]->[node y] keep(x0 + x1 / x2) n2, x2, degree                                       f32[node=34 y=4] sparse      544 B    272 FLOP
---- relational
EXPLAIN   1 device   794 kernel calls   0 exchanges   moves 0 B   peak 4.4 KiB per device

operator                                                                                                                                     keys                 rows  block           placement  cost
e2: Join on (NODE y)  combine [node y],[node y],[node]->[node y] keep(x0 + x1 / x2)                                                          NODE y                 34  f32[y=4] of 34  Single     34 calls  272 FLOP
├─ n2: Aggregate sum by (NODE y)                                                                                                             NODE y                 34  f32[y=4] of 34  Single
│  └─ Join on (DST)  contract [node dst],[dst y]->[node y]                                                                                   NODE y DST            156                  Single     156 calls  9.2 KFLOP
│     ├─ adjacency: Join on (SRC DST)  combine [src dst],[src],[dst]->[src dst] keep(f32(x0) / sqrt(x1 * x2))                                SRC DST               156  f32 of 1156     Single     156 calls  2.3 KFLOP
│     │  ├─ Scan edges                                                                                                                       SRC DST               156  i64 of 1156     Single
│     │  ├─ degree: Map f32(x0 + 1)                                                                                                          NODE                   34  f32 of 34       Single     34 calls
│     │  │  └─ e1: Aggregate sum by (NODE)                                                                                                   NODE                   34  i64 of 34       Single
│     │  │     └─ Join on ()  contract [node dst]->[node]                                                                                    NODE DST              156                  Single     156 calls  1.2 KFLOP
│     │  │        └─ Scan edges                                                                                                              SRC DST               156  i64 of 1156     Single
│     │  └─ Map degree                                                                                                                       (shared, see above)
│     └─ x2: Aggregate sum by (NODE y)                                                                                                       NODE y                 34  f32[y=4] of 34  Single
│        └─ Join on (h)  contract [node h],[h y]->[node y]                                                                                   NODE y h               34                  Single     34 calls  2.2 KFLOP
│           ├─ hidden: Join on (NODE h)  combine [node h],[node h],[node]->[node h] keep(case(x0 + x1 / x2 > f32(0), x0 + x1 / x2, f32(0)))  NODE h                 34  f32[h=8] of 34  Single     34 calls  544 FLOP
│           │  ├─ n1: Aggregate sum by (NODE h)                                                                                              NODE h                 34  f32[h=8] of 34  Single
│           │  │  └─ Join on (DST)  contract [node dst],[dst h]->[node h]                                                                    NODE h DST            156                  Single     156 calls  18.5 KFLOP
│           │  │     ├─ Join adjacency                                                                                                       (shared, see above)
│           │  │     └─ x1: Aggregate sum by (NODE h)                                                                                        NODE h                 34  f32[h=8]        Single
│           │  │        └─ Join on (d)  contract [node d],[d h]->[node h]                                                                    NODE h d               34                  Single     34 calls  8.7 KFLOP
│           │  │           ├─ Scan X                                                                                                         NODE d                 34  f32[d=16]       Single
│           │  │           └─ Scan W1                                                                                                        d h                     1  f32[d=16 h=8]   Single
│           │  ├─ Join x1                                                                                                                    (shared, see above)
│           │  └─ Map degree                                                                                                                 (shared, see above)
│           └─ Scan W2                                                                                                                       h y                     1  f32[h=8 y=4]    Single
├─ Join x2                                                                                                                                   (shared, see above)
└─ Map degree                                                                                                                                (shared, see above)
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  CAST(SUM(x0.val) AS BIGINT) AS val
FROM edges AS x0
GROUP BY
  x0.k0;

CREATE TEMPORARY TABLE degree AS
SELECT
  x0.k0,
  CAST(x0.val + 1 AS REAL) AS val
FROM e1 AS x0;

DROP TABLE e1;

CREATE TEMPORARY TABLE adjacency AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  CAST(x0.val AS REAL) / CAST(SQRT(x1.val * x2.val) AS REAL) AS val
FROM edges AS x0
JOIN degree AS x1
  ON x0.k0 = x1.k0
JOIN degree AS x2
  ON x0.k1 = x2.k0;

CREATE TEMPORARY TABLE x1 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM(
    '[node d],[d h]->[node h]',
    LIST(x0.block ORDER BY x0.k1),
    LIST(x1.block ORDER BY x0.k1)
  ) AS block
FROM X AS x0
JOIN W1 AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

CREATE TEMPORARY TABLE n1 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM(
    '[node dst],[dst h]->[node h]',
    '',
    '',
    '0',
    LIST(x0.val ORDER BY x0.k1),
    LIST(x0.k0 ORDER BY x0.k1),
    LIST(x0.k1 ORDER BY x0.k1),
    LIST(x1.block ORDER BY x0.k1)
  ) AS block
FROM adjacency AS x0
JOIN x1 AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

CREATE TEMPORARY TABLE hidden AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE(
    '[node h],[node h],[node]->[node h]',
    'case(x0 + x1 / x2 > f32(0), x0 + x1 / x2, f32(0))',
    '',
    '2',
    x0.block,
    x1.block,
    x2.val,
    x2.k0
  ) AS block
FROM n1 AS x0
JOIN x1 AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1
JOIN degree AS x2
  ON x0.k0 = x2.k0;

DROP TABLE n1;

DROP TABLE x1;

CREATE TEMPORARY TABLE x2 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM(
    '[node h],[h y]->[node y]',
    LIST(x0.block ORDER BY x0.k1),
    LIST(x1.block ORDER BY x0.k1)
  ) AS block
FROM hidden AS x0
JOIN W2 AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE hidden;

CREATE TEMPORARY TABLE n2 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM(
    '[node dst],[dst y]->[node y]',
    '',
    '',
    '0',
    LIST(x0.val ORDER BY x0.k1),
    LIST(x0.k0 ORDER BY x0.k1),
    LIST(x0.k1 ORDER BY x0.k1),
    LIST(x1.block ORDER BY x0.k1)
  ) AS block
FROM adjacency AS x0
JOIN x2 AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE adjacency;

CREATE TEMPORARY TABLE e2 AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE(
    '[node y],[node y],[node]->[node y]',
    'x0 + x1 / x2',
    '',
    '2',
    x0.block,
    x1.block,
    x2.val,
    x2.k0
  ) AS block
FROM n2 AS x0
JOIN x2 AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1
JOIN degree AS x2
  ON x0.k0 = x2.k0;

DROP TABLE n2;

DROP TABLE x2;

DROP TABLE degree;

SELECT * FROM e2;
---- program
program on host:0   794 kernel calls   0 exchanges   moves 0 bytes   peak 4536 bytes per device

pipeline 0
  %0  = scan "edges"  ->  i64[src=34/34 dst=34/34] scalar blocks Single  "edges"
        rows 156   calls 0   moved 0   held 1248
  %1  = join %0 sum [node dst]->[node] x0 over (node=34/34 dst=34/34) work Single  ->  i64[node=34/34] scalar blocks Single  "e1"
        rows 34   calls 156   moved 0   held 272
  %2  = map %1 f32(x0 + 1)  ->  f32[node=34/34] scalar blocks Single  "degree"
        rows 34   calls 34   moved 0   held 136
        free %1
  %3  = join %0, %2, %2 keep [src dst],[src],[dst]->[src dst] f32(x0) / sqrt(x1 * x2) over (src=34/34 dst=34/34) work Single  ->  f32[src=34/34 dst=34/34] scalar blocks Single  "adjacency"
        rows 156   calls 156   moved 0   held 624
        free %0
  %4  = scan "X"  ->  f32[node=34/34 d=16] Single  "X"
        rows 34   calls 0   moved 0   held 2176
  %5  = scan "W1"  ->  f32[d=16 h=8] Single  "W1"
        rows 1   calls 0   moved 0   held 512
  %6  = join %4, %5 sum [node d],[d h]->[node h] x0 * x1 over (node=34/34 h=8 d=16) work Single  ->  f32[node=34/34 h=8] Single  "x1"
        rows 34   calls 34   moved 0   held 1088
        free %4 %5
  %7  = join %3, %6 sum [node dst],[dst h]->[node h] x0 * x1 over (node=34/34 h=8 dst=34/34) work Single  ->  f32[node=34/34 h=8] blocks Single  "n1"
        rows 34   calls 156   moved 0   held 1088
  %8  = join %7, %6, %2 keep [node h],[node h],[node]->[node h] case(x0 + x1 / x2 > f32(0), x0 + x1 / x2, f32(0)) over (node=34/34 h=8) work Single  ->  f32[node=34/34 h=8] blocks Single  "hidden"
        rows 34   calls 34   moved 0   held 1088
        free %6 %7
  %9  = scan "W2"  ->  f32[h=8 y=4] Single  "W2"
        rows 1   calls 0   moved 0   held 128
  %10 = join %8, %9 sum [node h],[h y]->[node y] x0 * x1 over (node=34/34 y=4 h=8) work Single  ->  f32[node=34/34 y=4] blocks Single  "x2"
        rows 34   calls 34   moved 0   held 544
        free %8 %9
  %11 = join %3, %10 sum [node dst],[dst y]->[node y] x0 * x1 over (node=34/34 y=4 dst=34/34) work Single  ->  f32[node=34/34 y=4] blocks Single  "n2"
        rows 34   calls 156   moved 0   held 544
        free %3
  %12 = join %11, %10, %2 keep [node y],[node y],[node]->[node y] x0 + x1 / x2 over (node=34/34 y=4) work Single  ->  f32[node=34/34 y=4] blocks Single  "e2"
        rows 34   calls 34   moved 0   held 544
        free %2 %10 %11

emit %12
