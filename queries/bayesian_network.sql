-- title: Bayesian network: how likely rain and sprinkler are when the grass is wet
-- relation: cloudy f64[c=2] values 0.5 0.5
-- relation: sprinkler f64[c=2 s=2] values 0.5 0.5 0.9 0.1
-- relation: rain f64[c=2 r=2] values 0.8 0.2 0.2 0.8
-- relation: wet f64[s=2 r=2 w=2] values 1 0 0.1 0.9 0.1 0.9 0.01 0.99
WITH joint AS (
  SELECT w.s, w.r, SUM(c.val * s.val * r.val * w.val) AS val
  FROM cloudy AS c
  JOIN sprinkler AS s ON s.c = c.c
  JOIN rain AS r ON r.c = c.c
  JOIN wet AS w ON w.s = s.s AND w.r = r.r
  WHERE w.w = 1
  GROUP BY w.s, w.r
), evidence AS (
  SELECT SUM(val) AS val FROM joint
)
SELECT joint.s, joint.r, joint.val / evidence.val AS val
FROM joint CROSS JOIN evidence
---- logical
LOGICAL   5 einsums   0 maps   44 FLOP   output e4 f64[s=2 r=2] sparse

wet        := input                                     f64[s=2 r=2 w=2]         64 B
e1         := filter w == 1  wet                        f64[s=2 r=2 w=2] sparse  64 B
sprinkler  := input                                     f64[c=2 s=2]             32 B
cloudy     := input                                     f64[c=2]                 16 B
rain       := input                                     f64[c=2 r=2]             32 B
e2         := einsum c,cr->cr cloudy, rain              f64[c=2 r=2]             32 B   4 FLOP
e3         := einsum cs,cr->sr sprinkler, e2            f64[s=2 r=2]             32 B  16 FLOP
joint      := einsum srw,sr->sr e1, e3                  f64[s=2 r=2] sparse      32 B  16 FLOP
evidence   := einsum sr-> joint                         f64[] sparse              8 B   4 FLOP
e4         := einsum sr,->sr (x0 / x1) joint, evidence  f64[s=2 r=2] sparse      32 B   4 FLOP
---- relational
EXPLAIN   1 device   6 kernel calls   0 exchanges   moves 0 B   peak 184 B per device

operator                                          keys                 rows  block                    placement  cost
e4: Join on ()  combine sr,->sr (x0 / x1)         s r                     1  f64[s=2 r=2] masked      Single     1 call  4 FLOP
├─ joint: Aggregate sum by (s r)                  s r                     1  f64[s=2 r=2] masked      Single
│  └─ Join on (s r)  contract srw,sr->sr          s r w                   1                           Single     1 call  16 FLOP
│     ├─ e1: Filter w == 1                        s r w                   1  f64[s=2 r=2 w=2] masked  Single     1 call
│     │  └─ Scan wet                              s r w                   1  f64[s=2 r=2 w=2]         Single
│     └─ e3: Aggregate sum by (s r)               s r                     1  f64[s=2 r=2]             Single
│        └─ Join on (c)  contract cs,cr->sr       s r c                   1                           Single     1 call  16 FLOP
│           ├─ Scan sprinkler                     c s                     1  f64[c=2 s=2]             Single
│           └─ e2: Join on (c)  combine c,cr->cr  c r                     1  f64[c=2 r=2]             Single     1 call  4 FLOP
│              ├─ Scan cloudy                     c                       1  f64[c=2]                 Single
│              └─ Scan rain                       c r                     1  f64[c=2 r=2]             Single
└─ evidence: Aggregate sum by () of sr->                                  1  f64[] masked             Single     1 call  4 FLOP
   └─ Join joint                                  (shared, see above)
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0,
  x0.k1,
  x0.k2,
  BLOCK_KEEP('s r w', 'w == 1', x0.block) AS block
FROM wet AS x0;

CREATE TEMPORARY TABLE e2 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  BLOCK_COMBINE('c,cr->cr', 'x0 * x1', x0.block, x1.block) AS block
FROM cloudy AS x0
JOIN rain AS x1
  ON x0.k0 = x1.k0;

CREATE TEMPORARY TABLE e3 AS
SELECT
  x0.k1 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('cs,cr->sr', LIST(x0.block ORDER BY x0.k0), LIST(x1.block ORDER BY x0.k0)) AS block
FROM sprinkler AS x0
JOIN e2 AS x1
  ON x0.k0 = x1.k0
GROUP BY
  x0.k1,
  x1.k1;

DROP TABLE e2;

CREATE TEMPORARY TABLE joint AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  CONTRACT_SUM('srw,sr->sr', LIST(x0.block ORDER BY x0.k2), LIST(x1.block ORDER BY x0.k2)) AS block
FROM e1 AS x0
JOIN e3 AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1
GROUP BY
  x0.k0,
  x0.k1;

DROP TABLE e1;

DROP TABLE e3;

CREATE TEMPORARY TABLE evidence AS
SELECT
  CONTRACT_SUM('sr->', 'x0', LIST(x0.block ORDER BY x0.k0, x0.k1)) AS block
FROM joint AS x0
HAVING
  COUNT(*) > 0;

CREATE TEMPORARY TABLE e4 AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('sr,->sr', 'x0 / x1', x0.block, x1.block) AS block
FROM joint AS x0
CROSS JOIN evidence AS x1;

DROP TABLE joint;

DROP TABLE evidence;

SELECT * FROM e4;
---- program
program on host:0   6 kernel calls   0 exchanges   moves 0 bytes   peak 184 bytes per device

pipeline 0
  %0  = scan "wet"  ->  f64[s=2 r=2 w=2] Single  "wet"
        rows 1   calls 0   moved 0   held 64
  %1  = filter %0 where w == 1  ->  f64[s=2 r=2 w=2] cells Single  "e1"
        rows 1   calls 1   moved 0   held 72
        free %0
  %2  = scan "sprinkler"  ->  f64[c=2 s=2] Single  "sprinkler"
        rows 1   calls 0   moved 0   held 32
  %3  = scan "cloudy"  ->  f64[c=2] Single  "cloudy"
        rows 1   calls 0   moved 0   held 16
  %4  = scan "rain"  ->  f64[c=2 r=2] Single  "rain"
        rows 1   calls 0   moved 0   held 32
  %5  = join %3, %4 keep c,cr->cr x0 * x1 over (c=2 r=2) work Single  ->  f64[c=2 r=2] Single  "e2"
        rows 1   calls 1   moved 0   held 32
        free %3 %4
  %6  = join %2, %5 sum cs,cr->sr x0 * x1 over (s=2 r=2 c=2) work Single  ->  f64[s=2 r=2] Single  "e3"
        rows 1   calls 1   moved 0   held 32
        free %2 %5
  %7  = join %1, %6 sum srw,sr->sr x0 * x1 over (s=2 r=2 w=2) work Single  ->  f64[s=2 r=2] cells Single  "joint"
        rows 1   calls 1   moved 0   held 36
        free %1 %6
  %8  = join %7 sum sr-> x0 over (s=2 r=2) work Single  ->  f64[] cells Single  "evidence"
        rows 1   calls 1   moved 0   held 9
  %9  = join %7, %8 keep sr,->sr x0 / x1 over (s=2 r=2) work Single  ->  f64[s=2 r=2] cells Single  "e4"
        rows 1   calls 1   moved 0   held 36
        free %7 %8

emit %9
