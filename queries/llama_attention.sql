-- title: Causal attention of four heads, softmax written out
-- relation: Q f32[t=64 h=4 e=16]
-- relation: K f32[t=64 h=4 e=16]
-- relation: V f32[t=64 h=4 e=16]
-- devices: 2
WITH score AS (
  SELECT q.t, k.t AS s, q.h,
         CASE WHEN k.t <= q.t THEN SUM(q.val * k.val) / SQRT(16.0) ELSE CAST('-infinity' AS FLOAT) END AS val
  FROM Q AS q JOIN K AS k ON q.h = k.h AND q.e = k.e
  GROUP BY q.t, k.t, q.h
), top AS (
  SELECT t, h, MAX(val) AS val FROM score GROUP BY t, h
), weight AS (
  SELECT s.t, s.s, s.h, EXP(s.val - m.val) AS val
  FROM score AS s JOIN top AS m ON s.t = m.t AND s.h = m.h
), total AS (
  SELECT t, h, SUM(val) AS val FROM weight GROUP BY t, h
), probability AS (
  SELECT w.t, w.s, w.h, w.val / n.val AS val
  FROM weight AS w JOIN total AS n ON w.t = n.t AND w.h = n.h
)
SELECT p.t, p.h, v.e, SUM(p.val * v.val) AS val
FROM probability AS p JOIN V AS v ON p.s = v.t AND p.h = v.h
GROUP BY p.t, p.h, v.e
---- logical
LOGICAL   6 einsums   1 map   1.1 MFLOP   output e2 f32[t=64 h=4 e=16]

Q            := input                                         f32[t=64 h=4 e=16]  16.0 KiB
K            := input                                         f32[t=64 h=4 e=16]  16.0 KiB
e1           := einsum the,she->tsh Q, K                      f32[t=64 s=64 h=4]  64.0 KiB  524.3 KFLOP
score        := map $1  e1                                    f32[t=64 s=64 h=4]  64.0 KiB
top          := einsum tsh->th max score                      f32[t=64 h=4]        1.0 KiB   16.4 KFLOP
weight       := einsum tsh,th->tsh (exp(x0 - x1)) score, top  f32[t=64 s=64 h=4]  64.0 KiB   16.4 KFLOP
total        := einsum tsh->th weight                         f32[t=64 h=4]        1.0 KiB   16.4 KFLOP
probability  := einsum tsh,th->tsh (x0 / x1) weight, total    f32[t=64 s=64 h=4]  64.0 KiB   16.4 KFLOP
V            := input                                         f32[t=64 h=4 e=16]  16.0 KiB
e2           := einsum tsh,she->the probability, V            f32[t=64 h=4 e=16]  16.0 KiB  524.3 KFLOP

$1 = case(s <= t, x0 / f32(sqrt(16.0)), f32(-inf))
---- relational
EXPLAIN   2 devices   14 kernel calls   0 exchanges   moves 0 B   peak 64.5 KiB per device

operator                                                            keys                 rows  block               placement   cost
e2: Aggregate sum by (t H e)                                        t H e                   2  f32[t=64 h=2 e=16]  Sharded(h)
└─ Join on (H s)  contract tsh,she->the                             t H e s                 2                      Sharded(h)  2 calls  524.3 KFLOP
   ├─ probability: Join on (t H)  combine tsh,th->tsh (x0 / x1)     t s H                   2  f32[t=64 s=64 h=2]  Sharded(h)  2 calls  16.4 KFLOP
   │  ├─ weight: Join on (t H)  combine tsh,th->tsh (exp(x0 - x1))  t s H                   2  f32[t=64 s=64 h=2]  Sharded(h)  2 calls  16.4 KFLOP
   │  │  ├─ score: Map $1                                           t s H                   2  f32[t=64 s=64 h=2]  Sharded(h)  2 calls
   │  │  │  └─ e1: Aggregate sum by (t s H)                         t s H                   2  f32[t=64 s=64 h=2]  Sharded(h)
   │  │  │     └─ Join on (H e)  contract the,she->tsh              t s H e                 2                      Sharded(h)  2 calls  524.3 KFLOP
   │  │  │        ├─ Scan Q                                         t H e                   2  f32[t=64 h=2 e=16]  Sharded(h)
   │  │  │        └─ Scan K                                         t H e                   2  f32[t=64 h=2 e=16]  Sharded(h)
   │  │  └─ top: Aggregate max by (t H) of tsh->th                  t H                     2  f32[t=64 h=2]       Sharded(h)  2 calls  16.4 KFLOP
   │  │     └─ Map score                                            (shared, see above)
   │  └─ total: Aggregate sum by (t H) of tsh->th                   t H                     2  f32[t=64 h=2]       Sharded(h)  2 calls  16.4 KFLOP
   │     └─ Join weight                                             (shared, see above)
   └─ Scan V                                                        t H e                   2  f32[t=64 h=2 e=16]  Sharded(h)

$1 = case(s <= t, x0 / f32(sqrt(16.0)), f32(-inf))
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  x1.k0 AS k1,
  x0.k1 AS k2,
  CONTRACT_SUM('the,she->tsh', LIST(x0.block ORDER BY x0.k2), LIST(x1.block ORDER BY x0.k2)) AS block
FROM Q AS x0
JOIN K AS x1
  ON x0.k1 = x1.k1 AND x0.k2 = x1.k2
GROUP BY
  x0.k0,
  x1.k0,
  x0.k1;

CREATE TEMPORARY TABLE score AS
SELECT
  x0.k0,
  x0.k1,
  x0.k2,
  BLOCK_MAP('t s h', 'case(s <= t, x0 / f32(sqrt(16.0)), f32(-inf))', x0.block) AS block
FROM e1 AS x0;

DROP TABLE e1;

CREATE TEMPORARY TABLE top AS
SELECT
  x0.k0 AS k0,
  x0.k2 AS k1,
  CONTRACT_MAX('tsh->th', 'x0', LIST(x0.block ORDER BY x0.k1)) AS block
FROM score AS x0
GROUP BY
  x0.k0,
  x0.k2;

CREATE TEMPORARY TABLE weight AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  x0.k2 AS k2,
  BLOCK_COMBINE('tsh,th->tsh', 'exp(x0 - x1)', x0.block, x1.block) AS block
FROM score AS x0
JOIN top AS x1
  ON x0.k0 = x1.k0 AND x0.k2 = x1.k1;

DROP TABLE score;

DROP TABLE top;

CREATE TEMPORARY TABLE total AS
SELECT
  x0.k0 AS k0,
  x0.k2 AS k1,
  CONTRACT_SUM('tsh->th', 'x0', LIST(x0.block ORDER BY x0.k1)) AS block
FROM weight AS x0
GROUP BY
  x0.k0,
  x0.k2;

CREATE TEMPORARY TABLE probability AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  x0.k2 AS k2,
  BLOCK_COMBINE('tsh,th->tsh', 'x0 / x1', x0.block, x1.block) AS block
FROM weight AS x0
JOIN total AS x1
  ON x0.k0 = x1.k0 AND x0.k2 = x1.k1;

DROP TABLE weight;

DROP TABLE total;

CREATE TEMPORARY TABLE e2 AS
SELECT
  x0.k0 AS k0,
  x0.k2 AS k1,
  x1.k2 AS k2,
  CONTRACT_SUM('tsh,she->the', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM probability AS x0
JOIN V AS x1
  ON x0.k1 = x1.k0 AND x0.k2 = x1.k1
GROUP BY
  x0.k0,
  x0.k2,
  x1.k2;

DROP TABLE probability;

SELECT * FROM e2;
---- program
program on host:0 host:1   14 kernel calls   0 exchanges   moves 0 bytes   peak 66048 bytes per device

pipeline 0
  %0  = scan "Q"  ->  f32[t=64 h=4/2 e=16] Sharded(h)  "Q"
        rows 2   calls 0   moved 0   held 8192 8192
  %1  = scan "K"  ->  f32[t=64 h=4/2 e=16] Sharded(h)  "K"
        rows 2   calls 0   moved 0   held 8192 8192
  %2  = join %0, %1 sum the,she->tsh x0 * x1 over (t=64 s=64 h=4/2 e=16) work Sharded(h)  ->  f32[t=64 s=64 h=4/2] Sharded(h)  "e1"
        rows 2   calls 2   moved 0   held 32768 32768
        free %0 %1
  %3  = map %2 case(s <= t, x0 / f32(sqrt(16.0)), f32(-inf))  ->  f32[t=64 s=64 h=4/2] Sharded(h)  "score"
        rows 2   calls 2   moved 0   held 32768 32768
        free %2
  %4  = join %3 max tsh->th x0 over (t=64 h=4/2 s=64) work Sharded(h)  ->  f32[t=64 h=4/2] Sharded(h)  "top"
        rows 2   calls 2   moved 0   held 512 512
  %5  = join %3, %4 keep tsh,th->tsh exp(x0 - x1) over (t=64 s=64 h=4/2) work Sharded(h)  ->  f32[t=64 s=64 h=4/2] Sharded(h)  "weight"
        rows 2   calls 2   moved 0   held 32768 32768
        free %3 %4
  %6  = join %5 sum tsh->th x0 over (t=64 h=4/2 s=64) work Sharded(h)  ->  f32[t=64 h=4/2] Sharded(h)  "total"
        rows 2   calls 2   moved 0   held 512 512
  %7  = join %5, %6 keep tsh,th->tsh x0 / x1 over (t=64 s=64 h=4/2) work Sharded(h)  ->  f32[t=64 s=64 h=4/2] Sharded(h)  "probability"
        rows 2   calls 2   moved 0   held 32768 32768
        free %5 %6
  %8  = scan "V"  ->  f32[t=64 h=4/2 e=16] Sharded(h)  "V"
        rows 2   calls 0   moved 0   held 8192 8192
  %9  = join %7, %8 sum tsh,she->the x0 * x1 over (t=64 h=4/2 e=16 s=64) work Sharded(h)  ->  f32[t=64 h=4/2 e=16] Sharded(h)  "e2"
        rows 2   calls 2   moved 0   held 8192 8192
        free %7 %8

emit %9
