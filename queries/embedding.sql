-- title: Embedding look-up: a join of values with labels, then a projection
-- relation: ids i64[t=64] below 1000
-- relation: E f32[v=1000 d=32]
-- relation: W f32[d=32 f=48] scale 0.2
-- devices: 2
WITH h AS (
  SELECT i.t, e.d, e.val FROM ids AS i JOIN E AS e ON i.val = e.v
)
SELECT h.t, w.f, SUM(h.val * w.val) AS val
FROM h JOIN W AS w ON h.d = w.d
GROUP BY h.t, w.f
---- logical
LOGICAL   2 einsums   0 maps   200.7 KFLOP   output e1 f32[t=64 f=48] sparse

ids  := input                                         i64[t=64]                  512 B
E    := input                                         f32[v=1000 d=32]       125.0 KiB
h    := einsum t,vd->td max(x1) ids, E where x0 == v  f32[t=64 d=32] sparse    8.0 KiB    4.1 KFLOP
W    := input                                         f32[d=32 f=48]           6.0 KiB
e1   := einsum td,df->tf h, W                         f32[t=64 f=48] sparse   12.0 KiB  196.6 KFLOP
---- relational
EXPLAIN   2 devices   8 kernel calls   0 exchanges   moves 0 B   peak 130.2 KiB per device

operator                                                   keys   rows  block                  placement   cost
e1: Aggregate sum by (T f)                                 T f       2  f32[t=32 f=48] masked  Sharded(t)
└─ Join on (D)  contract td,df->tf                         T f D     4                         Sharded(t)  4 calls  196.6 KFLOP
   ├─ h: Aggregate max by (T D)                            T D       4  f32[t=32 d=16] masked  Sharded(t)
   │  └─ Join on ()  contract t,vd->td (x1) where x0 == v  T D v     4                         Sharded(t)  4 calls  4.1 KFLOP
   │     ├─ Scan ids                                       T         2  i64[t=32]              Sharded(t)
   │     └─ Scan E                                         v D       2  f32[v=1000 d=16]       Replicated
   └─ Scan W                                               D f       2  f32[d=16 f=48]         Replicated
---- sql
CREATE TEMPORARY TABLE h AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_MAX(
    't,vd->td',
    'x1',
    'x0 == v',
    LIST(x0.block ORDER BY x1.k0),
    LIST(x1.block ORDER BY x1.k0)
  ) AS block
FROM ids AS x0
CROSS JOIN E AS x1
GROUP BY
  x0.k0,
  x1.k1;

CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('td,df->tf', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM h AS x0
JOIN W AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE h;

SELECT * FROM e1;
---- program
program on host:0 host:1   8 kernel calls   0 exchanges   moves 0 bytes   peak 133376 bytes per device

pipeline 0
  %0  = scan "ids"  ->  i64[t=64/2] Sharded(t)  "ids"
        rows 2   calls 0   moved 0   held 256 256
  %1  = scan "E"  ->  f32[v=1000 d=32/2] Replicated  "E"
        rows 2   calls 0   moved 0   held 128000 128000
  %2  = join %0, %1 max t,vd->td x1 where x0 == v over (t=64/2 d=32/2 v=1000) work Sharded(t)  ->  f32[t=64/2 d=32/2] cells Sharded(t)  "h"
        rows 4   calls 4   moved 0   held 5120 5120
        free %0 %1
  %3  = scan "W"  ->  f32[d=32/2 f=48] Replicated  "W"
        rows 2   calls 0   moved 0   held 6144 6144
  %4  = join %2, %3 sum td,df->tf x0 * x1 over (t=64/2 f=48 d=32/2) work Sharded(t)  ->  f32[t=64/2 f=48] cells Sharded(t)  "e1"
        rows 2   calls 4   moved 0   held 7680 7680
        free %2 %3

emit %4
