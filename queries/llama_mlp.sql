-- title: SwiGLU MLP of one LLaMA block
-- relation: X f32[t=64 d=128]
-- relation: W_gate f32[d=128 f=344] scale 0.09
-- relation: W_up f32[d=128 f=344] scale 0.09
-- relation: W_down f32[f=344 d=128] scale 0.05
-- devices: 4
WITH gate AS (
  SELECT x.t, w.f, SUM(x.val * w.val) AS val
  FROM X AS x JOIN W_gate AS w ON x.d = w.d
  GROUP BY x.t, w.f
), up AS (
  SELECT x.t, w.f, SUM(x.val * w.val) AS val
  FROM X AS x JOIN W_up AS w ON x.d = w.d
  GROUP BY x.t, w.f
), h AS (
  SELECT g.t, g.f, SILU(g.val) * u.val AS val
  FROM gate AS g JOIN up AS u ON g.t = u.t AND g.f = u.f
)
SELECT h.t, w.d, SUM(h.val * w.val) AS val
FROM h JOIN W_down AS w ON h.f = w.f
GROUP BY h.t, w.d
---- logical
LOGICAL   4 einsums   0 maps   16.9 MFLOP   output e1 f32[t=64 d=128]

X       := input                                      f32[t=64 d=128]    32.0 KiB
W_gate  := input                                      f32[d=128 f=344]  172.0 KiB
gate    := einsum td,df->tf X, W_gate                 f32[t=64 f=344]    86.0 KiB   5.6 MFLOP
W_up    := input                                      f32[d=128 f=344]  172.0 KiB
up      := einsum td,df->tf X, W_up                   f32[t=64 f=344]    86.0 KiB   5.6 MFLOP
h       := einsum tf,tf->tf (silu(x0) * x1) gate, up  f32[t=64 f=344]    86.0 KiB  22.0 KFLOP
W_down  := input                                      f32[f=344 d=128]  172.0 KiB
e1      := einsum tf,fd->td h, W_down                 f32[t=64 d=128]    32.0 KiB   5.6 MFLOP
---- relational
EXPLAIN   4 devices   16 kernel calls   1 exchange   moves 96.0 KiB   peak 118.0 KiB per device

operator                                                      keys   rows  block            placement     cost
Exchange e1                                                   t d       1  f32[t=64 d=128]  Single        moves 96.0 KiB
└─ e1: Aggregate partial sum by (t d)                         t d       1  f32[t=64 d=128]  Partial(sum)
   └─ Join on (F)  contract tf,fd->td                         t d F     4                   Sharded(f)    4 calls  5.6 MFLOP
      ├─ h: Join on (t F)  combine tf,tf->tf (silu(x0) * x1)  t F       4  f32[t=64 f=86]   Sharded(f)    4 calls  22.0 KFLOP
      │  ├─ gate: Aggregate sum by (t F)                      t F       4  f32[t=64 f=86]   Sharded(f)
      │  │  └─ Join on (d)  contract td,df->tf                t F d     4                   Sharded(f)    4 calls  5.6 MFLOP
      │  │     ├─ Scan X                                      t d       1  f32[t=64 d=128]  Replicated
      │  │     └─ Scan W_gate                                 d F       4  f32[d=128 f=86]  Sharded(f)
      │  └─ up: Aggregate sum by (t F)                        t F       4  f32[t=64 f=86]   Sharded(f)
      │     └─ Join on (d)  contract td,df->tf                t F d     4                   Sharded(f)    4 calls  5.6 MFLOP
      │        ├─ Scan X                                      t d       1  f32[t=64 d=128]  Replicated
      │        └─ Scan W_up                                   d F       4  f32[d=128 f=86]  Sharded(f)
      └─ Scan W_down                                          F d       4  f32[f=86 d=128]  Sharded(f)
---- sql
CREATE TEMPORARY TABLE gate AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('td,df->tf', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM X AS x0
JOIN W_gate AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

CREATE TEMPORARY TABLE up AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('td,df->tf', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM X AS x0
JOIN W_up AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

CREATE TEMPORARY TABLE h AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('tf,tf->tf', 'silu(x0) * x1', x0.block, x1.block) AS block
FROM gate AS x0
JOIN up AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1;

DROP TABLE gate;

DROP TABLE up;

CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('tf,fd->td', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM h AS x0
JOIN W_down AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE h;

SELECT * FROM e1;
---- program
program on host:0 host:1 host:2 host:3   16 kernel calls   1 exchanges   moves 98304 bytes   peak 120832 bytes per device

pipeline 0
  %0  = scan "X"  ->  f32[t=64 d=128] Replicated  "X"
        rows 1   calls 0   moved 0   held 32768 32768 32768 32768
  %1  = scan "W_gate"  ->  f32[d=128 f=344/4] Sharded(f)  "W_gate"
        rows 4   calls 0   moved 0   held 44032 44032 44032 44032
  %2  = join %0, %1 sum td,df->tf x0 * x1 over (t=64 f=344/4 d=128) work Sharded(f)  ->  f32[t=64 f=344/4] Sharded(f)  "gate"
        rows 4   calls 4   moved 0   held 22016 22016 22016 22016
        free %1
  %3  = scan "W_up"  ->  f32[d=128 f=344/4] Sharded(f)  "W_up"
        rows 4   calls 0   moved 0   held 44032 44032 44032 44032
  %4  = join %0, %3 sum td,df->tf x0 * x1 over (t=64 f=344/4 d=128) work Sharded(f)  ->  f32[t=64 f=344/4] Sharded(f)  "up"
        rows 4   calls 4   moved 0   held 22016 22016 22016 22016
        free %0 %3
  %5  = join %2, %4 keep tf,tf->tf silu(x0) * x1 over (t=64 f=344/4) work Sharded(f)  ->  f32[t=64 f=344/4] Sharded(f)  "h"
        rows 4   calls 4   moved 0   held 22016 22016 22016 22016
        free %2 %4
  %6  = scan "W_down"  ->  f32[f=344/4 d=128] Sharded(f)  "W_down"
        rows 4   calls 0   moved 0   held 44032 44032 44032 44032
  %7  = join %5, %6 sum tf,fd->td x0 * x1 over (t=64 d=128 f=344/4) work Sharded(f)  ->  f32[t=64 d=128] Partial(sum)  "e1"
        rows 1   calls 4   moved 0   held 32768 32768 32768 32768
        free %5 %6
  %8  = exchange %7  ->  f32[t=64 d=128] Single  "e1"
        rows 1   calls 0   moved 98304   held 32768 0 0 0
        free %7

emit %8
