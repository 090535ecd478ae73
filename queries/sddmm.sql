-- title: Sampled dense-dense matrix product: scores on the edges of the karate club
-- relation: edges f32[src=34 dst=34] from networkx karate weights
-- relation: Q f32[node=34 d=16]
-- relation: K f32[node=34 d=16]
SELECT e.src, e.dst, SUM(e.val * q.val * k.val) AS val
FROM edges AS e JOIN Q AS q ON e.src = q.node JOIN K AS k ON e.dst = k.node AND q.d = k.d
GROUP BY e.src, e.dst
---- logical
LOGICAL   2 einsums   0 maps   38.1 KFLOP   output e2 f32[src=34 dst=34] sparse

edges  := input rows                                       f32[src=34 dst=34] sparse  4.5 KiB
Q      := input                                            f32[node=34 d=16]          2.1 KiB
K      := input                                            f32[node=34 d=16]          2.1 KiB
e1     := einsum [src d],[dst d]->[src dst] Q, K           f32[src=34 dst=34]         4.5 KiB  37.0 KFLOP
e2     := einsum [src dst],[src dst]->[src dst] edges, e1  f32[src=34 dst=34] sparse  4.5 KiB   1.2 KFLOP
---- relational
EXPLAIN   1 device   157 kernel calls   1 exchange   moves 0 B   peak 9.6 KiB per device

operator                                                       keys       rows  block               placement  cost
e2: Join on (SRC DST)  combine [src dst],[src dst]->[src dst]  SRC DST     156  f32[] of 1156       Single     156 calls  1.2 KFLOP
├─ Scan edges                                                  SRC DST     156  f32 of 1156         Single
└─ Exchange e1 re-tile                                         SRC DST    1156  f32[]               Single     moves 0 B
   └─ e1: Aggregate sum by (src dst)                           src dst       1  f32[src=34 dst=34]  Single
      └─ Join on (d)  contract [src d],[dst d]->[src dst]      src dst d     1                      Single     1 call  37.0 KFLOP
         ├─ Scan Q                                             node d        1  f32[node=34 d=16]   Single
         └─ Scan K                                             node d        1  f32[node=34 d=16]   Single
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  x1.k0 AS k1,
  CONTRACT_SUM(
    '[src d],[dst d]->[src dst]',
    LIST(x0.block ORDER BY x0.k1),
    LIST(x1.block ORDER BY x0.k1)
  ) AS block
FROM Q AS x0
JOIN K AS x1
  ON x0.k1 = x1.k1
GROUP BY
  x0.k0,
  x1.k0;

CREATE TEMPORARY TABLE e1_2 AS
SELECT
  g.k0,
  g.k1,
  BLOCK_RETILE(g.block, LIST(x0.block ORDER BY x0.k0, x0.k1)) AS block
FROM e1 AS x0
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

DROP TABLE e1;

CREATE TEMPORARY TABLE e2 AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('[src dst],[src dst]->[src dst]', 'x0 * x1', '', '0', x0.val, x0.k0, x0.k1, x1.block) AS block
FROM edges AS x0
JOIN e1_2 AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1;

DROP TABLE e1_2;

SELECT * FROM e2;
---- program
program on host:0   157 kernel calls   1 exchanges   moves 0 bytes   peak 9872 bytes per device

pipeline 0
  %0  = scan "edges"  ->  f32[src=34/34 dst=34/34] scalar blocks Single  "edges"
        rows 156   calls 0   moved 0   held 624
  %1  = scan "Q"  ->  f32[node=34 d=16] Single  "Q"
        rows 1   calls 0   moved 0   held 2176
  %2  = scan "K"  ->  f32[node=34 d=16] Single  "K"
        rows 1   calls 0   moved 0   held 2176
  %3  = join %1, %2 sum [src d],[dst d]->[src dst] x0 * x1 over (src=34 dst=34 d=16) work Single  ->  f32[src=34 dst=34] Single  "e1"
        rows 1   calls 1   moved 0   held 4624
        free %1 %2
  %4  = exchange %3  ->  f32[src=34/34 dst=34/34] Single  "e1"
        rows 1156   calls 0   moved 0   held 4624
        free %3

pipeline 1
  %5  = join %0, %4 keep [src dst],[src dst]->[src dst] x0 * x1 over (src=34/34 dst=34/34) work Single  ->  f32[src=34/34 dst=34/34] blocks Single  "e2"
        rows 156   calls 156   moved 0   held 624
        free %0 %4

emit %5
