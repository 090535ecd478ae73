-- title: Triangles of Les Miserables: trace(A^3) counts each one six times
-- relation: edges i64[src=77 dst=77] from networkx les_miserables
-- devices: 4
SELECT SUM(a.val * b.val * c.val) // 6 AS val
FROM edges AS a
JOIN edges AS b ON a.dst = b.src
JOIN edges AS c ON b.dst = c.src AND c.dst = a.src
---- logical
LOGICAL   2 einsums   1 map   924.9 KFLOP   output e3 i64[] sparse

edges  := input rows                                            i64[src=77 dst=77] sparse   46.3 KiB
e1     := einsum [src dst],[dst2 src]->[dst dst2] edges, edges  i64[dst=77 dst2=77] sparse  46.3 KiB  913.1 KFLOP
e2     := einsum [dst dst2],[dst dst2]->[] edges, e1            i64[] sparse                     8 B   11.9 KFLOP
e3     := map x0 // 6  e2                                       i64[] sparse                     8 B
---- relational
EXPLAIN   4 devices   6592 kernel calls   1 exchange   moves 96 B   peak 12.0 KiB per device

operator                                                                 keys          rows  block        placement     cost
e3: Map x0 // 6                                                                           1  i64 of 1     Replicated    4 calls
└─ Exchange e2                                                                            1  i64 of 1     Replicated    moves 96 B
   └─ e2: Aggregate partial sum by ()                                                     1  i64 of 1     Partial(sum)
      └─ Join on (DST DST2)  contract [dst dst2],[dst dst2]->[]          DST DST2       464               Sharded(dst)  464 calls  11.9 KFLOP
         ├─ Scan edges                                                   SRC DST        508  i64 of 5929  Sharded(src)
         └─ e1: Aggregate sum by (DST DST2)                              DST DST2      2531  i64 of 5929  Sharded(dst)
            └─ Join on (SRC)  contract [src dst],[dst2 src]->[dst dst2]  DST DST2 SRC  6124               Sharded(dst)  6124 calls  913.1 KFLOP
               ├─ Scan edges                                             SRC DST        508  i64 of 5929  Sharded(dst)
               └─ Scan edges                                             SRC DST        508  i64 of 5929  Replicated
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
program on host:0 host:1 host:2 host:3   6592 kernel calls   1 exchanges   moves 96 bytes   peak 12328 bytes per device

pipeline 0
  %0  = scan "edges"  ->  i64[src=77/77 dst=77/77] scalar blocks Sharded(src)  "edges"
        rows 508   calls 0   moved 0   held 760 1136 832 1336
  %1  = scan "edges"  ->  i64[src=77/77 dst=77/77] scalar blocks Sharded(dst)  "edges"
        rows 508   calls 0   moved 0   held 760 1136 832 1336
  %2  = scan "edges"  ->  i64[src=77/77 dst=77/77] scalar blocks Replicated  "edges"
        rows 508   calls 0   moved 0   held 4064 4064 4064 4064
  %3  = join %1, %2 sum [src dst],[dst2 src]->[dst dst2] x0 * x1 over (dst=77/77 dst2=77/77 src=77/77) work Sharded(dst)  ->  i64[dst=77/77 dst2=77/77] scalar blocks Sharded(dst)  "e1"
        rows 2531   calls 6124   moved 0   held 4344 5992 4336 5576
        free %1 %2
  %4  = join %0, %3 sum [dst dst2],[dst dst2]->[] x0 * x1 over (dst=77/77 dst2=77/77) work Sharded(dst)  ->  i64[] scalar blocks Partial(sum)  "e2"
        rows 1   calls 464   moved 0   held 8 8 8 8
        free %0 %3
  %5  = exchange %4  ->  i64[] scalar blocks Replicated  "e2"
        rows 1   calls 0   moved 96   held 8 8 8 8
        free %4

pipeline 1
  %6  = map %5 x0 // 6  ->  i64[] scalar blocks Replicated  "e3"
        rows 1   calls 4   moved 0   held 8 8 8 8
        free %5

emit %6
