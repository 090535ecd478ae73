-- title: Shortest paths of up to eight steps between the characters of Les Miserables (min-plus)
-- relation: d1 f64[src=77 dst=77] from networkx les_miserables distances
WITH d2 AS (
  SELECT a.src, b.dst, MIN(a.val + b.val) AS val FROM d1 AS a JOIN d1 AS b ON a.dst = b.src GROUP BY a.src, b.dst
), d4 AS (
  SELECT a.src, b.dst, MIN(a.val + b.val) AS val FROM d2 AS a JOIN d2 AS b ON a.dst = b.src GROUP BY a.src, b.dst
)
SELECT a.src, b.dst, MIN(a.val + b.val) AS val FROM d4 AS a JOIN d4 AS b ON a.dst = b.src GROUP BY a.src, b.dst
---- logical
LOGICAL   3 einsums   0 maps   2.7 MFLOP   output e1 f64[src=77 dst=77] sparse

d1  := input rows                                                   f64[src=77 dst=77] sparse  46.3 KiB
d2  := einsum [src dst2],[dst2 dst]->[src dst] min(x0 + x1) d1, d1  f64[src=77 dst=77] sparse  46.3 KiB  913.1 KFLOP
d4  := einsum [src dst2],[dst2 dst]->[src dst] min(x0 + x1) d2, d2  f64[src=77 dst=77] sparse  46.3 KiB  913.1 KFLOP
e1  := einsum [src dst2],[dst2 dst]->[src dst] min(x0 + x1) d4, d4  f64[src=77 dst=77] sparse  46.3 KiB  913.1 KFLOP
---- relational
EXPLAIN   1 device   563417 kernel calls   0 exchanges   moves 0 B   peak 92.2 KiB per device

operator                                                                            keys            rows  block        placement  cost
e1: Aggregate min by (SRC DST)                                                      SRC DST         5929  f64 of 5929  Single
└─ Join on (DST2)  contract [src dst2],[dst2 dst]->[src dst] (x0 + x1)              SRC DST DST2  448667               Single     448667 calls  913.1 KFLOP
   ├─ d4: Aggregate min by (SRC DST)                                                SRC DST         5875  f64 of 5929  Single
   │  └─ Join on (DST2)  contract [src dst2],[dst2 dst]->[src dst] (x0 + x1)        SRC DST DST2  107533               Single     107533 calls  913.1 KFLOP
   │     ├─ d2: Aggregate min by (SRC DST)                                          SRC DST         2575  f64 of 5929  Single
   │     │  └─ Join on (DST2)  contract [src dst2],[dst2 dst]->[src dst] (x0 + x1)  SRC DST DST2    7217               Single     7217 calls  913.1 KFLOP
   │     │     ├─ Scan d1                                                           SRC DST          585  f64 of 5929  Single
   │     │     └─ Scan d1                                                           SRC DST          585  f64 of 5929  Single
   │     └─ d2: Aggregate min by (SRC DST)                                          SRC DST         2575  f64 of 5929  Single
   │        └─ Join on (DST2)  contract [src dst2],[dst2 dst]->[src dst] (x0 + x1)  SRC DST DST2    7217               Single     7217 calls  913.1 KFLOP
   │           ├─ Scan d1                                                           SRC DST          585  f64 of 5929  Single
   │           └─ Scan d1                                                           SRC DST          585  f64 of 5929  Single
   └─ d4: Aggregate min by (SRC DST)                                                SRC DST         5875  f64 of 5929  Single
      └─ Join on (DST2)  contract [src dst2],[dst2 dst]->[src dst] (x0 + x1)        SRC DST DST2  107533               Single     107533 calls  913.1 KFLOP
         ├─ d2: Aggregate min by (SRC DST)                                          SRC DST         2575  f64 of 5929  Single
         │  └─ Join on (DST2)  contract [src dst2],[dst2 dst]->[src dst] (x0 + x1)  SRC DST DST2    7217               Single     7217 calls  913.1 KFLOP
         │     ├─ Scan d1                                                           SRC DST          585  f64 of 5929  Single
         │     └─ Scan d1                                                           SRC DST          585  f64 of 5929  Single
         └─ d2: Aggregate min by (SRC DST)                                          SRC DST         2575  f64 of 5929  Single
            └─ Join on (DST2)  contract [src dst2],[dst2 dst]->[src dst] (x0 + x1)  SRC DST DST2    7217               Single     7217 calls  913.1 KFLOP
               ├─ Scan d1                                                           SRC DST          585  f64 of 5929  Single
               └─ Scan d1                                                           SRC DST          585  f64 of 5929  Single
---- sql
CREATE TEMPORARY TABLE d2 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CASE
    WHEN BOOL_OR(CAST(ISNAN(x0.val + x1.val) AS BOOLEAN))
    THEN CAST('NaN' AS DOUBLE)
    ELSE MIN(x0.val + x1.val)
  END AS val
FROM d1 AS x0
JOIN d1 AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

CREATE TEMPORARY TABLE d4 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CASE
    WHEN BOOL_OR(CAST(ISNAN(x0.val + x1.val) AS BOOLEAN))
    THEN CAST('NaN' AS DOUBLE)
    ELSE MIN(x0.val + x1.val)
  END AS val
FROM d2 AS x0
JOIN d2 AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE d2;

CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CASE
    WHEN BOOL_OR(CAST(ISNAN(x0.val + x1.val) AS BOOLEAN))
    THEN CAST('NaN' AS DOUBLE)
    ELSE MIN(x0.val + x1.val)
  END AS val
FROM d4 AS x0
JOIN d4 AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE d4;

SELECT * FROM e1;
---- program
program on host:0   563417 kernel calls   0 exchanges   moves 0 bytes   peak 94432 bytes per device

pipeline 0
  %0  = scan "d1"  ->  f64[src=77/77 dst=77/77] scalar blocks Single  "d1"
        rows 585   calls 0   moved 0   held 4680
  %1  = join %0, %0 min [src dst2],[dst2 dst]->[src dst] x0 + x1 over (src=77/77 dst=77/77 dst2=77/77) work Single  ->  f64[src=77/77 dst=77/77] scalar blocks Single  "d2"
        rows 2575   calls 7217   moved 0   held 20600
        free %0
  %2  = join %1, %1 min [src dst2],[dst2 dst]->[src dst] x0 + x1 over (src=77/77 dst=77/77 dst2=77/77) work Single  ->  f64[src=77/77 dst=77/77] scalar blocks Single  "d4"
        rows 5875   calls 107533   moved 0   held 47000
        free %1
  %3  = join %2, %2 min [src dst2],[dst2 dst]->[src dst] x0 + x1 over (src=77/77 dst=77/77 dst2=77/77) work Single  ->  f64[src=77/77 dst=77/77] scalar blocks Single  "e1"
        rows 5929   calls 448667   moved 0   held 47432
        free %2

emit %3
