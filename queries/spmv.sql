-- title: Adjacency matrix of the karate club times a vector
-- relation: edges i64[src=34 dst=34] from networkx karate
-- relation: x f64[node=34]
SELECT e.src, SUM(e.val * x.val) AS val
FROM edges AS e JOIN x ON e.dst = x.node
GROUP BY e.src
---- logical
LOGICAL   1 einsum   1 map   2.3 KFLOP   output e2 f64[src=34] sparse

edges  := input rows                           i64[src=34 dst=34] sparse  9.0 KiB
e1     := map f64(x0)  edges                   f64[src=34 dst=34] sparse  9.0 KiB
x      := input                                f64[node=34]                 272 B
e2     := einsum [src dst],[dst]->[src] e1, x  f64[src=34] sparse           272 B  2.3 KFLOP
---- relational
EXPLAIN   1 device   312 kernel calls   0 exchanges   moves 0 B   peak 2.4 KiB per device

operator                                           keys     rows  block        placement  cost
e2: Aggregate sum by (SRC)                         SRC        34  f64[] of 34  Single
└─ Join on (DST)  contract [src dst],[dst]->[src]  SRC DST   156               Single     156 calls  2.3 KFLOP
   ├─ e1: Map f64(x0)                              SRC DST   156  f64 of 1156  Single     156 calls
   │  └─ Scan edges                                SRC DST   156  i64 of 1156  Single
   └─ Scan x                                       NODE       34  f64[]        Single
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0,
  x0.k1,
  CAST(x0.val AS DOUBLE) AS val
FROM edges AS x0;

CREATE TEMPORARY TABLE e2 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM(
    '[src dst],[dst]->[src]',
    '',
    '',
    '0',
    LIST(x0.val ORDER BY x0.k1),
    LIST(x0.k0 ORDER BY x0.k1),
    LIST(x0.k1 ORDER BY x0.k1),
    LIST(x1.block ORDER BY x0.k1)
  ) AS block
FROM e1 AS x0
JOIN x AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0;

DROP TABLE e1;

SELECT * FROM e2;
---- program
program on host:0   312 kernel calls   0 exchanges   moves 0 bytes   peak 2496 bytes per device

pipeline 0
  %0  = scan "edges"  ->  i64[src=34/34 dst=34/34] scalar blocks Single  "edges"
        rows 156   calls 0   moved 0   held 1248
  %1  = map %0 f64(x0)  ->  f64[src=34/34 dst=34/34] scalar blocks Single  "e1"
        rows 156   calls 156   moved 0   held 1248
        free %0
  %2  = scan "x"  ->  f64[node=34/34] Single  "x"
        rows 34   calls 0   moved 0   held 272
  %3  = join %1, %2 sum [src dst],[dst]->[src] x0 * x1 over (src=34/34 dst=34/34) work Single  ->  f64[src=34/34] blocks Single  "e2"
        rows 34   calls 156   moved 0   held 272
        free %1 %2

emit %3
