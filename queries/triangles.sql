-- title: Triangles of the karate club: trace(A^3) counts each one six times
-- relation: edges i64[src=34 dst=34] from networkx karate
SELECT SUM(a.val * b.val * c.val) // 6 AS val
FROM edges AS a
JOIN edges AS b ON a.dst = b.src
JOIN edges AS c ON b.dst = c.src AND c.dst = a.src
---- logical
LOGICAL   2 einsums   1 map   80.9 KFLOP   output e3 i64[] sparse

edges  := input rows                                            i64[src=34 dst=34] sparse   9.0 KiB
e1     := einsum [src dst],[dst2 src]->[dst dst2] edges, edges  i64[dst=34 dst2=34] sparse  9.0 KiB  78.6 KFLOP
e2     := einsum [dst dst2],[dst dst2]->[] edges, e1            i64[] sparse                    8 B   2.3 KFLOP
e3     := map x0 // 6  e2                                       i64[] sparse                    8 B
---- relational
EXPLAIN   1 device   1347 kernel calls   0 exchanges   moves 0 B   peak 6.7 KiB per device

operator                                                              keys          rows  block        placement  cost
e3: Map x0 // 6                                                                        1  i64 of 1     Single     1 call
└─ e2: Aggregate sum by ()                                                             1  i64 of 1     Single
   └─ Join on (DST DST2)  contract [dst dst2],[dst dst2]->[]          DST DST2       134               Single     134 calls  2.3 KFLOP
      ├─ Scan edges                                                   SRC DST        156  i64 of 1156  Single
      └─ e1: Aggregate sum by (DST DST2)                              DST DST2       698  i64 of 1156  Single
         └─ Join on (SRC)  contract [src dst],[dst2 src]->[dst dst2]  DST DST2 SRC  1212               Single     1212 calls  78.6 KFLOP
            ├─ Scan edges                                             SRC DST        156  i64 of 1156  Single
            └─ Scan edges                                             SRC DST        156  i64 of 1156  Single
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k1 AS k0,
  x1.k0 AS k1,
  CAST(SUM(x0.val * x1.val) AS BIGINT) AS val
FROM edges AS x0
JOIN edges AS x1
  ON x0.k0 = x1.k1
GROUP BY
  x0.k1,
  x1.k0;

CREATE TEMPORARY TABLE e2 AS
SELECT
  CAST(SUM(x0.val * x1.val) AS BIGINT) AS val
FROM edges AS x0
JOIN e1 AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1
HAVING
  COUNT(*) > 0;

DROP TABLE e1;

CREATE TEMPORARY TABLE e3 AS
SELECT
  x0.val // 6 AS val
FROM e2 AS x0;

DROP TABLE e2;

SELECT * FROM e3;
---- program
program on host:0   1347 kernel calls   0 exchanges   moves 0 bytes   peak 6840 bytes per device

pipeline 0
  %0  = scan "edges"  ->  i64[src=34/34 dst=34/34] scalar blocks Single  "edges"
        rows 156   calls 0   moved 0   held 1248
  %1  = join %0, %0 sum [src dst],[dst2 src]->[dst dst2] x0 * x1 over (dst=34/34 dst2=34/34 src=34/34) work Single  ->  i64[dst=34/34 dst2=34/34] scalar blocks Single  "e1"
        rows 698   calls 1212   moved 0   held 5584
  %2  = join %0, %1 sum [dst dst2],[dst dst2]->[] x0 * x1 over (dst=34/34 dst2=34/34) work Single  ->  i64[] scalar blocks Single  "e2"
        rows 1   calls 134   moved 0   held 8
        free %0 %1
  %3  = map %2 x0 // 6  ->  i64[] scalar blocks Single  "e3"
        rows 1   calls 1   moved 0   held 8
        free %2

emit %3
