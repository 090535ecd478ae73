-- title: Two graph convolutions on the karate club, self loops included
-- relation: edges i64[src=34 dst=34] from networkx karate
-- relation: X f32[node=34 d=16]
-- relation: W1 f32[d=16 h=8] scale 0.25
-- relation: W2 f32[h=8 y=4] scale 0.35
-- devices: 2
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

edges      := input rows                                                                               i64[src=34 dst=34] sparse  9.0 KiB
e1         := einsum [node dst]->[node] edges                                                          i64[node=34] sparse          272 B   1.2 KFLOP
degree     := map f32(x0 + 1)  e1                                                                      f32[node=34] sparse          136 B
adjacency  := einsum [src dst],[src],[dst]->[src dst] (f32(x0) / sqrt(x1 * x2)) edges, degree, degree  f32[src=34 dst=34] sparse  4.5 KiB   2.3 KFLOP
X          := input                                                                                    f32[node=34 d=16]          2.1 KiB
W1         := input                                                                                    f32[d=16 h=8]                512 B
x1         := einsum [node d],[d h]->[node h] X, W1                                                    f32[node=34 h=8]           1.1 KiB   8.7 KFLOP
n1         := einsum [node dst],[dst h]->[node h] adjacency, x1                                        f32[node=34 h=8] sparse    1.1 KiB  18.5 KFLOP
hidden     := einsum [node h],[node h],[node]->[node h] ($1) n1, x1, degree                            f32[node=34 h=8] sparse    1.1 KiB    544 FLOP
W2         := input                                                                                    f32[h=8 y=4]                 128 B
x2         := einsum [node h],[h y]->[node y] hidden, W2                                               f32[node=34 y=4] sparse      544 B   2.2 KFLOP
n2         := einsum [node dst],[dst y]->[node y] adjacency, x2                                        f32[node=34 y=4] sparse      544 B   9.2 KFLOP
e2         := einsum [node y],[node y],[node]->[node y] (x0 + x1 / x2) n2, x2, degree                  f32[node=34 y=4] sparse      544 B    272 FLOP

$1 = case(x0 + x1 / x2 > f32(0), x0 + x1 / x2, f32(0))
---- relational
EXPLAIN   2 devices   762 kernel calls   4 exchanges   moves 1.7 KiB   peak 2.5 KiB per device

operator                                                                                                   keys                 rows  block              placement      cost
e2: Join on (NODE y)  combine [node y],[node y],[node]->[node y] (x0 + x1 / x2)                            NODE y                 34  f32[y=4] of 34     Sharded(node)  34 calls  272 FLOP
├─ n2: Aggregate sum by (NODE y)                                                                           NODE y                 34  f32[y=4] of 34     Sharded(node)
│  └─ Join on (DST)  contract [node dst],[dst y]->[node y]                                                 NODE y DST            156                     Sharded(node)  156 calls  9.2 KFLOP
│     ├─ adjacency: Join on (SRC DST)  combine [src dst],[src],[dst]->[src dst] (f32(x0) / sqrt(x1 * x2))  SRC DST               156  f32 of 1156        Sharded(src)   156 calls  2.3 KFLOP
│     │  ├─ Scan edges                                                                                     SRC DST               156  i64 of 1156        Sharded(src)
│     │  ├─ degree: Map f32(x0 + 1)                                                                        NODE                   34  f32 of 34          Sharded(node)  34 calls
│     │  │  └─ e1: Aggregate sum by (NODE) of [node dst]->[node]                                           NODE                   34  i64 of 34          Sharded(node)  156 calls  1.2 KFLOP
│     │  │     └─ Scan edges                                                                               SRC DST               156  i64 of 1156        Sharded(src)
│     │  └─ Exchange degree                                                                                NODE                   34  f32 of 34          Replicated     moves 136 B
│     │     └─ Map degree                                                                                  (shared, see above)
│     └─ Exchange x2                                                                                       NODE y                 34  f32[y=4] of 34     Replicated     moves 544 B
│        └─ x2: Aggregate sum by (NODE y)                                                                  NODE y                 34  f32[y=4] of 34     Sharded(node)
│           └─ Join on (h)  contract [node h],[h y]->[node y]                                              NODE y h               34                     Sharded(node)  34 calls  2.2 KFLOP
│              ├─ hidden: Join on (NODE h)  combine [node h],[node h],[node]->[node h] ($1)                NODE h                 34  f32[h=8] of 34     Sharded(node)  34 calls  544 FLOP
│              │  ├─ n1: Aggregate sum by (NODE h)                                                         NODE h                 34  f32[h=8] of 34     Sharded(node)
│              │  │  └─ Join on (DST)  contract [node dst],[dst h]->[node h]                               NODE h DST            156                     Sharded(node)  156 calls  18.5 KFLOP
│              │  │     ├─ Join adjacency                                                                  (shared, see above)
│              │  │     └─ Exchange x1 re-tile                                                             NODE h                 34  f32[h=8]           Replicated     moves 1.1 KiB
│              │  │        └─ x1: Aggregate sum by (NODE h)                                                NODE h                  2  f32[node=17 h=8]   Sharded(node)
│              │  │           └─ Join on (d)  contract [node d],[d h]->[node h]                            NODE h d                2                     Sharded(node)  2 calls  8.7 KFLOP
│              │  │              ├─ Scan X                                                                 NODE d                  2  f32[node=17 d=16]  Sharded(node)
│              │  │              └─ Scan W1                                                                d h                     1  f32[d=16 h=8]      Replicated
│              │  ├─ Exchange x1 re-tile                                                                   NODE h                 34  f32[h=8]           Sharded(node)  moves 0 B
│              │  │  └─ Join x1                                                                            (shared, see above)
│              │  └─ Map degree                                                                            (shared, see above)
│              └─ Scan W2                                                                                  h y                     1  f32[h=8 y=4]       Replicated
├─ Join x2                                                                                                 (shared, see above)
└─ Map degree                                                                                              (shared, see above)

$1 = case(x0 + x1 / x2 > f32(0), x0 + x1 / x2, f32(0))
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
  CAST(x0.val AS REAL) / ROUND_FLOAT32(SQRT(x1.val * x2.val)) AS val
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

CREATE TEMPORARY TABLE x1_2 AS
SELECT
  g.k0,
  g.k1,
  BLOCK_RETILE(g.block, LIST(x0.block ORDER BY x0.k0, x0.k1)) AS block
FROM x1 AS x0
JOIN overlap_1 AS o0
  ON o0.s = x0.k0
JOIN overlap_2 AS o1
  ON o1.s = x0.k1
JOIN grid_1 AS g
  ON g.k0 = o0.k AND g.k1 = o1.k
GROUP BY
  g.k0,
  g.k1,
  g.block;

DROP TABLE x1;

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
JOIN x1_2 AS x1
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
JOIN x1_2 AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1
JOIN degree AS x2
  ON x0.k0 = x2.k0;

DROP TABLE n1;

DROP TABLE x1_2;

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
program on host:0 host:1   762 kernel calls   4 exchanges   moves 1768 bytes   peak 2564 bytes per device

pipeline 0
  %0  = scan "edges"  ->  i64[src=34/34 dst=34/34] scalar blocks Sharded(src)  "edges"
        rows 156   calls 0   moved 0   held 640 608
  %1  = join %0 sum [node dst]->[node] x0 over (node=34/34 dst=34/34) work Sharded(node)  ->  i64[node=34/34] scalar blocks Sharded(node)  "e1"
        rows 34   calls 156   moved 0   held 136 136
  %2  = map %1 f32(x0 + 1)  ->  f32[node=34/34] scalar blocks Sharded(node)  "degree"
        rows 34   calls 34   moved 0   held 68 68
        free %1
  %3  = exchange %2  ->  f32[node=34/34] scalar blocks Replicated  "degree"
        rows 34   calls 0   moved 136   held 136 136

pipeline 1
  %4  = join %0, %2, %3 keep [src dst],[src],[dst]->[src dst] f32(x0) / sqrt(x1 * x2) over (src=34/34 dst=34/34) work Sharded(src)  ->  f32[src=34/34 dst=34/34] scalar blocks Sharded(src)  "adjacency"
        rows 156   calls 156   moved 0   held 320 304
        free %0 %3
  %5  = scan "X"  ->  f32[node=34/2 d=16] Sharded(node)  "X"
        rows 2   calls 0   moved 0   held 1088 1088
  %6  = scan "W1"  ->  f32[d=16 h=8] Replicated  "W1"
        rows 1   calls 0   moved 0   held 512 512
  %7  = join %5, %6 sum [node d],[d h]->[node h] x0 * x1 over (node=34/2 h=8 d=16) work Sharded(node)  ->  f32[node=34/2 h=8] Sharded(node)  "x1"
        rows 2   calls 2   moved 0   held 544 544
        free %5 %6
  %8  = exchange %7  ->  f32[node=34/34 h=8] Replicated  "x1"
        rows 34   calls 0   moved 1088   held 1088 1088

pipeline 2
  %9  = join %4, %8 sum [node dst],[dst h]->[node h] x0 * x1 over (node=34/34 h=8 dst=34/34) work Sharded(node)  ->  f32[node=34/34 h=8] blocks Sharded(node)  "n1"
        rows 34   calls 156   moved 0   held 544 544
        free %8
  %10 = exchange %7  ->  f32[node=34/34 h=8] Sharded(node)  "x1"
        rows 34   calls 0   moved 0   held 544 544
        free %7

pipeline 3
  %11 = join %9, %10, %2 keep [node h],[node h],[node]->[node h] case(x0 + x1 / x2 > f32(0), x0 + x1 / x2, f32(0)) over (node=34/34 h=8) work Sharded(node)  ->  f32[node=34/34 h=8] blocks Sharded(node)  "hidden"
        rows 34   calls 34   moved 0   held 544 544
        free %9 %10
  %12 = scan "W2"  ->  f32[h=8 y=4] Replicated  "W2"
        rows 1   calls 0   moved 0   held 128 128
  %13 = join %11, %12 sum [node h],[h y]->[node y] x0 * x1 over (node=34/34 y=4 h=8) work Sharded(node)  ->  f32[node=34/34 y=4] blocks Sharded(node)  "x2"
        rows 34   calls 34   moved 0   held 272 272
        free %11 %12
  %14 = exchange %13  ->  f32[node=34/34 y=4] blocks Replicated  "x2"
        rows 34   calls 0   moved 544   held 544 544

pipeline 4
  %15 = join %4, %14 sum [node dst],[dst y]->[node y] x0 * x1 over (node=34/34 y=4 dst=34/34) work Sharded(node)  ->  f32[node=34/34 y=4] blocks Sharded(node)  "n2"
        rows 34   calls 156   moved 0   held 272 272
        free %4 %14
  %16 = join %15, %13, %2 keep [node y],[node y],[node]->[node y] x0 + x1 / x2 over (node=34/34 y=4) work Sharded(node)  ->  f32[node=34/34 y=4] blocks Sharded(node)  "e2"
        rows 34   calls 34   moved 0   held 272 272
        free %2 %13 %15

emit %16
