-- title: One-dimensional convolution: a join on shifted coordinates
-- relation: X f32[t=128 c=8]
-- relation: W f32[k=3 c=8 o=16] scale 0.2
-- devices: 2
SELECT x.t - w.k AS t, w.o, SUM(x.val * w.val) AS val
FROM X AS x JOIN W AS w ON x.c = w.c
WHERE x.t >= w.k AND x.t - w.k < 126
GROUP BY x.t - w.k, w.o
---- logical
LOGICAL   2 einsums   1 map   622.6 KFLOP   output e3 f32[t=128 o=16] sparse

ones  := input                                                                bool[t=128]                     128 B
e1    := map f32(1.0)  ones                                                   f32[t=128]                      512 B
X     := input                                                                f32[t=128 c=8]                4.0 KiB
W     := input                                                                f32[k=3 c=8 o=16]             1.5 KiB
e2    := einsum [t2 c],[k c o]->[t2 k o] X, W where t2 >= k and t2 - k < 126  f32[t2=128 k=3 o=16] sparse  24.0 KiB   98.3 KFLOP
e3    := einsum [t],[t2 k o]->[t o] e1, e2 where t == t2 - k                  f32[t=128 o=16] sparse        8.0 KiB  524.3 KFLOP
---- relational
EXPLAIN   2 devices   10 kernel calls   1 exchange   moves 10.0 KiB   peak 25.5 KiB per device

operator                                                                                   keys      rows  block                      placement     cost
Exchange e3                                                                                t O          2  f32[t=128 o=8] masked      Sharded(o)    moves 10.0 KiB
└─ e3: Aggregate partial sum by (t O)                                                      t O          2  f32[t=128 o=8] masked      Partial(sum)
   └─ Join on ()  contract [t],[t2 k o]->[t o] where t == t2 - k                           t O T2 k     4                             Sharded(t2)   4 calls  524.3 KFLOP
      ├─ e1: Map f32(1.0)                                                                  t            1  f32[t=128]                 Replicated    2 calls
      │  └─ Scan ones                                                                      t            1  bool[t=128]                Replicated
      └─ e2: Aggregate sum by (T2 k O)                                                     T2 k O       4  f32[t2=64 k=3 o=8] masked  Sharded(t2)
         └─ Join on (c)  contract [t2 c],[k c o]->[t2 k o] where t2 >= k and t2 - k < 126  T2 k O c     4                             Sharded(t2)   4 calls  98.3 KFLOP
            ├─ Scan X                                                                      T c          2  f32[t=64 c=8]              Sharded(t)
            └─ Scan W                                                                      k c O        2  f32[k=3 c=8 o=8]           Replicated
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0,
  BLOCK_MAP('t', 'f32(1.0)', x0.block) AS block
FROM ones AS x0;

CREATE TEMPORARY TABLE e2 AS
SELECT
  x0.k0 AS k0,
  x1.k0 AS k1,
  x1.k2 AS k2,
  CONTRACT_SUM(
    '[t2 c],[k c o]->[t2 k o]',
    '',
    't2 >= k and t2 - k < 126',
    LIST(x0.block ORDER BY x0.k1),
    LIST(x1.block ORDER BY x0.k1)
  ) AS block
FROM X AS x0
JOIN W AS x1
  ON x0.k1 = x1.k1
GROUP BY
  x0.k0,
  x1.k0,
  x1.k2;

CREATE TEMPORARY TABLE e3 AS
SELECT
  x0.k0 AS k0,
  x1.k2 AS k1,
  CONTRACT_SUM(
    '[t],[t2 k o]->[t o]',
    '',
    't == t2 - k',
    LIST(x0.block ORDER BY x1.k0, x1.k1),
    LIST(x1.block ORDER BY x1.k0, x1.k1)
  ) AS block
FROM e1 AS x0
CROSS JOIN e2 AS x1
GROUP BY
  x0.k0,
  x1.k2;

DROP TABLE e1;

DROP TABLE e2;

SELECT * FROM e3;
---- program
program on host:0 host:1   10 kernel calls   1 exchanges   moves 10240 bytes   peak 26112 bytes per device

pipeline 0
  %0  = scan "ones"  ->  bool[t=128] Replicated  "ones"
        rows 1   calls 0   moved 0   held 128 128
  %1  = map %0 f32(1.0)  ->  f32[t=128] Replicated  "e1"
        rows 1   calls 2   moved 0   held 512 512
        free %0
  %2  = scan "X"  ->  f32[t=128/2 c=8] Sharded(t)  "X"
        rows 2   calls 0   moved 0   held 2048 2048
  %3  = scan "W"  ->  f32[k=3 c=8 o=16/2] Replicated  "W"
        rows 2   calls 0   moved 0   held 1536 1536
  %4  = join %2, %3 sum [t2 c],[k c o]->[t2 k o] x0 * x1 where t2 >= k and t2 - k < 126 over (t2=128/2 k=3 o=16/2 c=8) work Sharded(t2)  ->  f32[t2=128/2 k=3 o=16/2] cells Sharded(t2)  "e2"
        rows 4   calls 4   moved 0   held 15360 15360
        free %2 %3
  %5  = join %1, %4 sum [t],[t2 k o]->[t o] x0 * x1 where t == t2 - k over (t=128 o=16/2 t2=128/2 k=3) work Sharded(t2)  ->  f32[t=128 o=16/2] cells Partial(sum)  "e3"
        rows 2   calls 4   moved 0   held 10240 10240
        free %1 %4
  %6  = exchange %5  ->  f32[t=128 o=16/2] cells Sharded(o)  "e3"
        rows 2   calls 0   moved 10240   held 5120 5120
        free %5

emit %6
