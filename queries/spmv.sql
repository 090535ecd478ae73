-- title: Adjacency matrix of the karate club times a vector
-- relation: edges i64[src=34 dst=34] from networkx karate
-- relation: x f64[node=34]
SELECT e.src, SUM(e.val * x.val) AS val
FROM edges AS e JOIN x ON e.dst = x.node
GROUP BY e.src
---- logical
LOGICAL   1 einsum   0 maps   2.3 KFLOP   output e1 f64[src=34] sparse

edges  := input rows                              i64[src=34 dst=34] sparse  9.0 KiB
x      := input                                   f64[node=34]                 272 B
e1     := einsum [src dst],[dst]->[src] edges, x  f64[src=34] sparse           272 B  2.3 KFLOP
---- relational
EXPLAIN   1 device   156 kernel calls   0 exchanges   moves 0 B   peak 1.8 KiB per device

operator                                           keys     rows  block        placement  cost
e1: Aggregate sum by (SRC)                         SRC        34  f64[] of 34  Single
└─ Join on (DST)  contract [src dst],[dst]->[src]  SRC DST   156               Single     156 calls  2.3 KFLOP
   ├─ Scan edges                                   SRC DST   156  i64 of 1156  Single
   └─ Scan x                                       NODE       34  f64[]        Single
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM(
    '[src dst],[dst]->[src]',
    'f64(x0) * x1',
    '',
    '0',
    LIST(x0.val ORDER BY x0.k1),
    LIST(x0.k0 ORDER BY x0.k1),
    LIST(x0.k1 ORDER BY x0.k1),
    LIST(x1.block ORDER BY x0.k1)
  ) AS block
FROM edges AS x0
JOIN x AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0;

SELECT * FROM e1;
---- program
program on host:0   156 kernel calls   0 exchanges   moves 0 bytes   peak 1792 bytes per device

pipeline 0
  %0  = scan "edges"  ->  i64[src=34/34 dst=34/34] scalar blocks Single  "edges"
        rows 156   calls 0   moved 0   held 1248
  %1  = scan "x"  ->  f64[node=34/34] Single  "x"
        rows 34   calls 0   moved 0   held 272
  %2  = join %0, %1 sum [src dst],[dst]->[src] f64(x0) * x1 over (src=34/34 dst=34/34) work Single  ->  f64[src=34/34] blocks Single  "e1"
        rows 34   calls 156   moved 0   held 272
        free %0 %1

emit %2
