-- title: One LLaMA block: RMS norm, RoPE, causal attention, SwiGLU, residuals
-- relation: X f32[t=256 d=1024]
-- relation: G_attention f32[d=1024]
-- relation: G_mlp f32[d=1024]
-- relation: W_q f32[d=1024 h=16 e=32 c=2] scale 0.03
-- relation: W_k f32[d=1024 h=16 e=32 c=2] scale 0.03
-- relation: W_v f32[d=1024 h=16 e=32 c=2] scale 0.03
-- relation: W_o f32[h=16 e=32 c=2 d=1024] scale 0.03
-- relation: W_gate f32[d=1024 f=2816] scale 0.03
-- relation: W_up f32[d=1024 f=2816] scale 0.03
-- relation: W_down f32[f=2816 d=1024] scale 0.02
-- relation: pair f32[c=2 c2=2] ones
-- devices: 2
WITH square AS (
  SELECT t, CAST(AVG(val * val) AS FLOAT) AS val FROM X GROUP BY t
), x1 AS (
  SELECT x.t, x.d, x.val * g.val / SQRT(m.val + 0.00001) AS val
  FROM X AS x JOIN square AS m ON x.t = m.t JOIN G_attention AS g ON x.d = g.d
), q AS (
  SELECT x.t, w.h, w.e, w.c, SUM(x.val * w.val) AS val
  FROM x1 AS x JOIN W_q AS w ON x.d = w.d
  GROUP BY x.t, w.h, w.e, w.c
), k AS (
  SELECT x.t, w.h, w.e, w.c, SUM(x.val * w.val) AS val
  FROM x1 AS x JOIN W_k AS w ON x.d = w.d
  GROUP BY x.t, w.h, w.e, w.c
), v AS (
  SELECT x.t, w.h, w.e, w.c, SUM(x.val * w.val) AS val
  FROM x1 AS x JOIN W_v AS w ON x.d = w.d
  GROUP BY x.t, w.h, w.e, w.c
), q_turned AS (
  SELECT q.t, q.h, q.e, r.c,
         SUM(q.val * CASE WHEN r.c = r.c2 THEN COS(q.t * POWER(10000.0, -2.0 * q.e / 64))
                          WHEN r.c = 1 THEN SIN(q.t * POWER(10000.0, -2.0 * q.e / 64))
                          ELSE -SIN(q.t * POWER(10000.0, -2.0 * q.e / 64)) END) AS val
  FROM q JOIN pair AS r ON q.c = r.c2
  GROUP BY q.t, q.h, q.e, r.c
), k_turned AS (
  SELECT k.t, k.h, k.e, r.c,
         SUM(k.val * CASE WHEN r.c = r.c2 THEN COS(k.t * POWER(10000.0, -2.0 * k.e / 64))
                          WHEN r.c = 1 THEN SIN(k.t * POWER(10000.0, -2.0 * k.e / 64))
                          ELSE -SIN(k.t * POWER(10000.0, -2.0 * k.e / 64)) END) AS val
  FROM k JOIN pair AS r ON k.c = r.c2
  GROUP BY k.t, k.h, k.e, r.c
), score AS (
  SELECT q.t, k.t AS s, q.h,
         CASE WHEN k.t <= q.t THEN SUM(q.val * k.val) / SQRT(64.0) ELSE CAST('-infinity' AS FLOAT) END AS val
  FROM q_turned AS q JOIN k_turned AS k ON q.h = k.h AND q.e = k.e AND q.c = k.c
  GROUP BY q.t, k.t, q.h
), top AS (
  SELECT t, h, MAX(val) AS val FROM score GROUP BY t, h
), weight AS (
  SELECT s.t, s.s, s.h, EXP(s.val - m.val) AS val
  FROM score AS s JOIN top AS m ON s.t = m.t AND s.h = m.h
), total AS (
  SELECT t, h, SUM(val) AS val FROM weight GROUP BY t, h
), probability AS (
  SELECT w.t, w.s, w.h, w.val / n.val AS val
  FROM weight AS w JOIN total AS n ON w.t = n.t AND w.h = n.h
), head AS (
  SELECT p.t, p.h, v.e, v.c, SUM(p.val * v.val) AS val
  FROM probability AS p JOIN v ON p.s = v.t AND p.h = v.h
  GROUP BY p.t, p.h, v.e, v.c
), attention AS (
  SELECT a.t, w.d, SUM(a.val * w.val) AS val
  FROM head AS a JOIN W_o AS w ON a.h = w.h AND a.e = w.e AND a.c = w.c
  GROUP BY a.t, w.d
), y AS (
  SELECT x.t, x.d, x.val + a.val AS val
  FROM X AS x JOIN attention AS a ON x.t = a.t AND x.d = a.d
), y_square AS (
  SELECT t, CAST(AVG(val * val) AS FLOAT) AS val FROM y GROUP BY t
), y1 AS (
  SELECT y.t, y.d, y.val * g.val / SQRT(m.val + 0.00001) AS val
  FROM y JOIN y_square AS m ON y.t = m.t JOIN G_mlp AS g ON y.d = g.d
), gate AS (
  SELECT y.t, w.f, SUM(y.val * w.val) AS val
  FROM y1 AS y JOIN W_gate AS w ON y.d = w.d
  GROUP BY y.t, w.f
), up AS (
  SELECT y.t, w.f, SUM(y.val * w.val) AS val
  FROM y1 AS y JOIN W_up AS w ON y.d = w.d
  GROUP BY y.t, w.f
), hidden AS (
  SELECT g.t, g.f, SILU(g.val) * u.val AS val
  FROM gate AS g JOIN up AS u ON g.t = u.t AND g.f = u.f
), mlp AS (
  SELECT h.t, w.d, SUM(h.val * w.val) AS val
  FROM hidden AS h JOIN W_down AS w ON h.f = w.f
  GROUP BY h.t, w.d
)
SELECT y.t, y.d, y.val + m.val AS val
FROM y JOIN mlp AS m ON y.t = m.t AND y.d = m.d
---- logical
LOGICAL   26 einsums   1 map   6.9 GFLOP   output e6 f32[t=256 d=1024]

X            := input                                                                       f32[t=256 d=1024]           1.0 MiB
e1           := einsum td->t sum(x0 * x0) X                                                 f32[t=256]                  1.0 KiB  262.1 KFLOP
e2           := einsum td->t sum(f32(1)) X                                                  f32[t=256]                  1.0 KiB  262.1 KFLOP
square       := einsum t,t->t (x0 / x1) e1, e2                                              f32[t=256]                  1.0 KiB     256 FLOP
G_attention  := input                                                                       f32[d=1024]                 4.0 KiB
x1           := einsum td,t,d->td (x0 * x2 / sqrt(x1 + f32(1e-05))) X, square, G_attention  f32[t=256 d=1024]           1.0 MiB  524.3 KFLOP
W_q          := input                                                                       f32[d=1024 h=16 e=32 c=2]   4.0 MiB
q            := einsum td,dhec->thec x1, W_q                                                f32[t=256 h=16 e=32 c=2]    1.0 MiB  536.9 MFLOP
pair         := input                                                                       f32[c=2 c2=2]                  16 B
q_turned     := einsum [t h e c2],[c c2]->[t h e c] sum($1) q, pair                         f32[t=256 h=16 e=32 c=2]    1.0 MiB    1.0 MFLOP
W_k          := input                                                                       f32[d=1024 h=16 e=32 c=2]   4.0 MiB
k            := einsum td,dhec->thec x1, W_k                                                f32[t=256 h=16 e=32 c=2]    1.0 MiB  536.9 MFLOP
k_turned     := einsum [t h e c2],[c c2]->[t h e c] sum($1) k, pair                         f32[t=256 h=16 e=32 c=2]    1.0 MiB    1.0 MFLOP
e3           := einsum thec,shec->tsh q_turned, k_turned                                    f32[t=256 s=256 h=16]       4.0 MiB  134.2 MFLOP
score        := map $2  e3                                                                  f32[t=256 s=256 h=16]       4.0 MiB
top          := einsum tsh->th max score                                                    f32[t=256 h=16]            16.0 KiB    1.0 MFLOP
weight       := einsum tsh,th->tsh (exp(x0 - x1)) score, top                                f32[t=256 s=256 h=16]       4.0 MiB    1.0 MFLOP
total        := einsum tsh->th weight                                                       f32[t=256 h=16]            16.0 KiB    1.0 MFLOP
probability  := einsum tsh,th->tsh (x0 / x1) weight, total                                  f32[t=256 s=256 h=16]       4.0 MiB    1.0 MFLOP
W_v          := input                                                                       f32[d=1024 h=16 e=32 c=2]   4.0 MiB
v            := einsum td,dhec->thec x1, W_v                                                f32[t=256 h=16 e=32 c=2]    1.0 MiB  536.9 MFLOP
head         := einsum tsh,shec->thec probability, v                                        f32[t=256 h=16 e=32 c=2]    1.0 MiB  134.2 MFLOP
W_o          := input                                                                       f32[h=16 e=32 c=2 d=1024]   4.0 MiB
attention    := einsum thec,hecd->td head, W_o                                              f32[t=256 d=1024]           1.0 MiB  536.9 MFLOP
y            := einsum td,td->td (x0 + x1) X, attention                                     f32[t=256 d=1024]           1.0 MiB  262.1 KFLOP
e4           := einsum td->t sum(x0 * x0) y                                                 f32[t=256]                  1.0 KiB  262.1 KFLOP
e5           := einsum td->t sum(f32(1)) y                                                  f32[t=256]                  1.0 KiB  262.1 KFLOP
y_square     := einsum t,t->t (x0 / x1) e4, e5                                              f32[t=256]                  1.0 KiB     256 FLOP
G_mlp        := input                                                                       f32[d=1024]                 4.0 KiB
y1           := einsum td,t,d->td (x0 * x2 / sqrt(x1 + f32(1e-05))) y, y_square, G_mlp      f32[t=256 d=1024]           1.0 MiB  524.3 KFLOP
W_gate       := input                                                                       f32[d=1024 f=2816]         11.0 MiB
gate         := einsum td,df->tf y1, W_gate                                                 f32[t=256 f=2816]           2.8 MiB    1.5 GFLOP
W_up         := input                                                                       f32[d=1024 f=2816]         11.0 MiB
up           := einsum td,df->tf y1, W_up                                                   f32[t=256 f=2816]           2.8 MiB    1.5 GFLOP
hidden       := einsum tf,tf->tf (silu(x0) * x1) gate, up                                   f32[t=256 f=2816]           2.8 MiB  720.9 KFLOP
W_down       := input                                                                       f32[f=2816 d=1024]         11.0 MiB
mlp          := einsum tf,fd->td hidden, W_down                                             f32[t=256 d=1024]           1.0 MiB    1.5 GFLOP
e6           := einsum td,td->td (x0 + x1) y, mlp                                           f32[t=256 d=1024]           1.0 MiB  262.1 KFLOP

$1 = x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64)))))))
$2 = case(s <= t, x0 / f32(sqrt(64.0)), f32(-inf))
---- relational
EXPLAIN   2 devices   68 kernel calls   2 exchanges   moves 2.0 MiB   peak 14.8 MiB per device

operator                                                                                                              keys                 rows  block                      placement   cost
e6: Join on (T d)  combine td,td->td (x0 + x1)                                                                        T d                     2  f32[t=128 d=1024]          Sharded(t)  2 calls  262.1 KFLOP
├─ y: Join on (T d)  combine td,td->td (x0 + x1)                                                                      T d                     2  f32[t=128 d=1024]          Sharded(t)  2 calls  262.1 KFLOP
│  ├─ Scan X                                                                                                          T d                     2  f32[t=128 d=1024]          Sharded(t)
│  └─ attention: Aggregate sum by (T d)                                                                               T d                     2  f32[t=128 d=1024]          Sharded(t)
│     └─ Join on (h e c)  contract thec,hecd->td                                                                      T d h e c               2                             Sharded(t)  2 calls  536.9 MFLOP
│        ├─ head: Aggregate sum by (T h e c)                                                                          T h e c                 2  f32[t=128 h=16 e=32 c=2]   Sharded(t)
│        │  └─ Join on (h S)  contract tsh,shec->thec                                                                 T h e c S               4                             Sharded(t)  4 calls  134.2 MFLOP
│        │     ├─ probability: Join on (T h)  combine tsh,th->tsh (x0 / x1)                                           T S h                   4  f32[t=128 s=128 h=16]      Sharded(t)  4 calls  1.0 MFLOP
│        │     │  ├─ weight: Join on (T h)  combine tsh,th->tsh (exp(x0 - x1))                                        T S h                   4  f32[t=128 s=128 h=16]      Sharded(t)  4 calls  1.0 MFLOP
│        │     │  │  ├─ score: Map $1                                                                                 T S h                   4  f32[t=128 s=128 h=16]      Sharded(t)  4 calls
│        │     │  │  │  └─ e3: Aggregate sum by (T S h)                                                               T S h                   4  f32[t=128 s=128 h=16]      Sharded(t)
│        │     │  │  │     └─ Join on (h e c)  contract thec,shec->tsh                                                T S h e c               4                             Sharded(t)  4 calls  134.2 MFLOP
│        │     │  │  │        ├─ q_turned: Aggregate sum by (T h e c)                                                 T h e c                 2  f32[t=128 h=16 e=32 c=2]   Sharded(t)
│        │     │  │  │        │  └─ Join on (c2)  contract [t h e c2],[c c2]->[t h e c] ($2)                          T h e c c2              2                             Sharded(t)  2 calls  1.0 MFLOP
│        │     │  │  │        │     ├─ q: Aggregate sum by (T h e c)                                                  T h e c                 2  f32[t=128 h=16 e=32 c=2]   Sharded(t)
│        │     │  │  │        │     │  └─ Join on (d)  contract td,dhec->thec                                         T h e c d               2                             Sharded(t)  2 calls  536.9 MFLOP
│        │     │  │  │        │     │     ├─ x1: Join on (T d)  combine td,t,d->td (x0 * x2 / sqrt(x1 + f32(1e-05)))  T d                     2  f32[t=128 d=1024]          Sharded(t)  2 calls  524.3 KFLOP
│        │     │  │  │        │     │     │  ├─ Scan X                                                                T d                     2  f32[t=128 d=1024]          Sharded(t)
│        │     │  │  │        │     │     │  ├─ square: Join on (T)  combine t,t->t (x0 / x1)                         T                       2  f32[t=128]                 Sharded(t)  2 calls  256 FLOP
│        │     │  │  │        │     │     │  │  ├─ e1: Aggregate sum by (T) of td->t (x0 * x0)                        T                       2  f32[t=128]                 Sharded(t)  2 calls  262.1 KFLOP
│        │     │  │  │        │     │     │  │  │  └─ Scan X                                                          T d                     2  f32[t=128 d=1024]          Sharded(t)
│        │     │  │  │        │     │     │  │  └─ e2: Aggregate sum by (T) of td->t (f32(1))                         T                       2  f32[t=128]                 Sharded(t)  2 calls  262.1 KFLOP
│        │     │  │  │        │     │     │  │     └─ Scan X                                                          T d                     2  f32[t=128 d=1024]          Sharded(t)
│        │     │  │  │        │     │     │  └─ Scan G_attention                                                      d                       1  f32[d=1024]                Replicated
│        │     │  │  │        │     │     └─ Scan W_q                                                                 d h e c                 1  f32[d=1024 h=16 e=32 c=2]  Replicated
│        │     │  │  │        │     └─ Scan pair                                                                      c c2                    1  f32[c=2 c2=2]              Replicated
│        │     │  │  │        └─ Exchange k_turned                                                                    T h e c                 2  f32[t=128 h=16 e=32 c=2]   Replicated  moves 1.0 MiB
│        │     │  │  │           └─ k_turned: Aggregate sum by (T h e c)                                              T h e c                 2  f32[t=128 h=16 e=32 c=2]   Sharded(t)
│        │     │  │  │              └─ Join on (c2)  contract [t h e c2],[c c2]->[t h e c] ($2)                       T h e c c2              2                             Sharded(t)  2 calls  1.0 MFLOP
│        │     │  │  │                 ├─ k: Aggregate sum by (T h e c)                                               T h e c                 2  f32[t=128 h=16 e=32 c=2]   Sharded(t)
│        │     │  │  │                 │  └─ Join on (d)  contract td,dhec->thec                                      T h e c d               2                             Sharded(t)  2 calls  536.9 MFLOP
│        │     │  │  │                 │     ├─ Join x1                                                               (shared, see above)
│        │     │  │  │                 │     └─ Scan W_k                                                              d h e c                 1  f32[d=1024 h=16 e=32 c=2]  Replicated
│        │     │  │  │                 └─ Scan pair                                                                   c c2                    1  f32[c=2 c2=2]              Replicated
│        │     │  │  └─ top: Aggregate max by (T h) of tsh->th                                                        T h                     2  f32[t=128 h=16]            Sharded(t)  4 calls  1.0 MFLOP
│        │     │  │     └─ Map score                                                                                  (shared, see above)
│        │     │  └─ total: Aggregate sum by (T h) of tsh->th                                                         T h                     2  f32[t=128 h=16]            Sharded(t)  4 calls  1.0 MFLOP
│        │     │     └─ Join weight                                                                                   (shared, see above)
│        │     └─ Exchange v                                                                                          T h e c                 2  f32[t=128 h=16 e=32 c=2]   Replicated  moves 1.0 MiB
│        │        └─ v: Aggregate sum by (T h e c)                                                                    T h e c                 2  f32[t=128 h=16 e=32 c=2]   Sharded(t)
│        │           └─ Join on (d)  contract td,dhec->thec                                                           T h e c d               2                             Sharded(t)  2 calls  536.9 MFLOP
│        │              ├─ Join x1                                                                                    (shared, see above)
│        │              └─ Scan W_v                                                                                   d h e c                 1  f32[d=1024 h=16 e=32 c=2]  Replicated
│        └─ Scan W_o                                                                                                  h e c d                 1  f32[h=16 e=32 c=2 d=1024]  Replicated
└─ mlp: Aggregate sum by (T d)                                                                                        T d                     2  f32[t=128 d=1024]          Sharded(t)
   └─ Join on (f)  contract tf,fd->td                                                                                 T d f                   2                             Sharded(t)  2 calls  1.5 GFLOP
      ├─ hidden: Join on (T f)  combine tf,tf->tf (silu(x0) * x1)                                                     T f                     2  f32[t=128 f=2816]          Sharded(t)  2 calls  720.9 KFLOP
      │  ├─ gate: Aggregate sum by (T f)                                                                              T f                     2  f32[t=128 f=2816]          Sharded(t)
      │  │  └─ Join on (d)  contract td,df->tf                                                                        T f d                   2                             Sharded(t)  2 calls  1.5 GFLOP
      │  │     ├─ y1: Join on (T d)  combine td,t,d->td (x0 * x2 / sqrt(x1 + f32(1e-05)))                             T d                     2  f32[t=128 d=1024]          Sharded(t)  2 calls  524.3 KFLOP
      │  │     │  ├─ Join y                                                                                           (shared, see above)
      │  │     │  ├─ y_square: Join on (T)  combine t,t->t (x0 / x1)                                                  T                       2  f32[t=128]                 Sharded(t)  2 calls  256 FLOP
      │  │     │  │  ├─ e4: Aggregate sum by (T) of td->t (x0 * x0)                                                   T                       2  f32[t=128]                 Sharded(t)  2 calls  262.1 KFLOP
      │  │     │  │  │  └─ Join y                                                                                     (shared, see above)
      │  │     │  │  └─ e5: Aggregate sum by (T) of td->t (f32(1))                                                    T                       2  f32[t=128]                 Sharded(t)  2 calls  262.1 KFLOP
      │  │     │  │     └─ Join y                                                                                     (shared, see above)
      │  │     │  └─ Scan G_mlp                                                                                       d                       1  f32[d=1024]                Replicated
      │  │     └─ Scan W_gate                                                                                         d f                     1  f32[d=1024 f=2816]         Replicated
      │  └─ up: Aggregate sum by (T f)                                                                                T f                     2  f32[t=128 f=2816]          Sharded(t)
      │     └─ Join on (d)  contract td,df->tf                                                                        T f d                   2                             Sharded(t)  2 calls  1.5 GFLOP
      │        ├─ Join y1                                                                                             (shared, see above)
      │        └─ Scan W_up                                                                                           d f                     1  f32[d=1024 f=2816]         Replicated
      └─ Scan W_down                                                                                                  f d                     1  f32[f=2816 d=1024]         Replicated

$1 = case(s <= t, x0 / f32(sqrt(64.0)), f32(-inf))
$2 = x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64)))))))
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM('td->t', 'x0 * x0', LIST(x0.block ORDER BY x0.k1)) AS block
FROM X AS x0
GROUP BY
  x0.k0;

CREATE TEMPORARY TABLE e2 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM('td->t', 'f32(1)', LIST(x0.block ORDER BY x0.k1)) AS block
FROM X AS x0
GROUP BY
  x0.k0;

CREATE TEMPORARY TABLE square AS
SELECT
  x0.k0 AS k0,
  BLOCK_COMBINE('t,t->t', 'x0 / x1', x0.block, x1.block) AS block
FROM e1 AS x0
JOIN e2 AS x1
  ON x0.k0 = x1.k0;

DROP TABLE e1;

DROP TABLE e2;

CREATE TEMPORARY TABLE x1 AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('td,t,d->td', 'x0 * x2 / sqrt(x1 + f32(1e-05))', x0.block, x1.block, x2.block) AS block
FROM X AS x0
JOIN square AS x1
  ON x0.k0 = x1.k0
JOIN G_attention AS x2
  ON x0.k1 = x2.k0;

DROP TABLE square;

CREATE TEMPORARY TABLE q AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  x1.k2 AS k2,
  x1.k3 AS k3,
  CONTRACT_SUM('td,dhec->thec', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM x1 AS x0
JOIN W_q AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1,
  x1.k2,
  x1.k3;

CREATE TEMPORARY TABLE q_turned AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  x0.k2 AS k2,
  x1.k0 AS k3,
  CONTRACT_SUM(
    '[t h e c2],[c c2]->[t h e c]',
    'x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64)))))))',
    LIST(x0.block ORDER BY x0.k3),
    LIST(x1.block ORDER BY x0.k3)
  ) AS block
FROM q AS x0
JOIN pair AS x1
  ON x0.k3 = x1.k1
GROUP BY
  x0.k0,
  x0.k1,
  x0.k2,
  x1.k0;

DROP TABLE q;

CREATE TEMPORARY TABLE k AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  x1.k2 AS k2,
  x1.k3 AS k3,
  CONTRACT_SUM('td,dhec->thec', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM x1 AS x0
JOIN W_k AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1,
  x1.k2,
  x1.k3;

CREATE TEMPORARY TABLE k_turned AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  x0.k2 AS k2,
  x1.k0 AS k3,
  CONTRACT_SUM(
    '[t h e c2],[c c2]->[t h e c]',
    'x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64)))))))',
    LIST(x0.block ORDER BY x0.k3),
    LIST(x1.block ORDER BY x0.k3)
  ) AS block
FROM k AS x0
JOIN pair AS x1
  ON x0.k3 = x1.k1
GROUP BY
  x0.k0,
  x0.k1,
  x0.k2,
  x1.k0;

DROP TABLE k;

CREATE TEMPORARY TABLE e3 AS
SELECT
  x0.k0 AS k0,
  x1.k0 AS k1,
  x0.k1 AS k2,
  CONTRACT_SUM(
    'thec,shec->tsh',
    LIST(x0.block ORDER BY x0.k2, x0.k3),
    LIST(x1.block ORDER BY x0.k2, x0.k3)
  ) AS block
FROM q_turned AS x0
JOIN k_turned AS x1
  ON x0.k1 = x1.k1 AND x0.k2 = x1.k2 AND x0.k3 = x1.k3
GROUP BY
  x0.k0,
  x1.k0,
  x0.k1;

DROP TABLE q_turned;

DROP TABLE k_turned;

CREATE TEMPORARY TABLE score AS
SELECT
  x0.k0,
  x0.k1,
  x0.k2,
  BLOCK_MAP('t s h', 'case(s <= t, x0 / f32(sqrt(64.0)), f32(-inf))', x0.block) AS block
FROM e3 AS x0;

DROP TABLE e3;

CREATE TEMPORARY TABLE top AS
SELECT
  x0.k0 AS k0,
  x0.k2 AS k1,
  CONTRACT_MAX('tsh->th', 'x0', LIST(x0.block ORDER BY x0.k1)) AS block
FROM score AS x0
GROUP BY
  x0.k0,
  x0.k2;

CREATE TEMPORARY TABLE weight AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  x0.k2 AS k2,
  BLOCK_COMBINE('tsh,th->tsh', 'exp(x0 - x1)', x0.block, x1.block) AS block
FROM score AS x0
JOIN top AS x1
  ON x0.k0 = x1.k0 AND x0.k2 = x1.k1;

DROP TABLE score;

DROP TABLE top;

CREATE TEMPORARY TABLE total AS
SELECT
  x0.k0 AS k0,
  x0.k2 AS k1,
  CONTRACT_SUM('tsh->th', 'x0', LIST(x0.block ORDER BY x0.k1)) AS block
FROM weight AS x0
GROUP BY
  x0.k0,
  x0.k2;

CREATE TEMPORARY TABLE probability AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  x0.k2 AS k2,
  BLOCK_COMBINE('tsh,th->tsh', 'x0 / x1', x0.block, x1.block) AS block
FROM weight AS x0
JOIN total AS x1
  ON x0.k0 = x1.k0 AND x0.k2 = x1.k1;

DROP TABLE weight;

DROP TABLE total;

CREATE TEMPORARY TABLE v AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  x1.k2 AS k2,
  x1.k3 AS k3,
  CONTRACT_SUM('td,dhec->thec', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM x1 AS x0
JOIN W_v AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1,
  x1.k2,
  x1.k3;

DROP TABLE x1;

CREATE TEMPORARY TABLE head AS
SELECT
  x0.k0 AS k0,
  x0.k2 AS k1,
  x1.k2 AS k2,
  x1.k3 AS k3,
  CONTRACT_SUM('tsh,shec->thec', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM probability AS x0
JOIN v AS x1
  ON x0.k1 = x1.k0 AND x0.k2 = x1.k1
GROUP BY
  x0.k0,
  x0.k2,
  x1.k2,
  x1.k3;

DROP TABLE probability;

DROP TABLE v;

CREATE TEMPORARY TABLE attention AS
SELECT
  x0.k0 AS k0,
  x1.k3 AS k1,
  CONTRACT_SUM(
    'thec,hecd->td',
    LIST(x0.block ORDER BY x0.k1, x0.k2, x0.k3),
    LIST(x1.block ORDER BY x0.k1, x0.k2, x0.k3)
  ) AS block
FROM head AS x0
JOIN W_o AS x1
  ON x0.k1 = x1.k0 AND x0.k2 = x1.k1 AND x0.k3 = x1.k2
GROUP BY
  x0.k0,
  x1.k3;

DROP TABLE head;

CREATE TEMPORARY TABLE y AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('td,td->td', 'x0 + x1', x0.block, x1.block) AS block
FROM X AS x0
JOIN attention AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1;

DROP TABLE attention;

CREATE TEMPORARY TABLE e4 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM('td->t', 'x0 * x0', LIST(x0.block ORDER BY x0.k1)) AS block
FROM y AS x0
GROUP BY
  x0.k0;

CREATE TEMPORARY TABLE e5 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM('td->t', 'f32(1)', LIST(x0.block ORDER BY x0.k1)) AS block
FROM y AS x0
GROUP BY
  x0.k0;

CREATE TEMPORARY TABLE y_square AS
SELECT
  x0.k0 AS k0,
  BLOCK_COMBINE('t,t->t', 'x0 / x1', x0.block, x1.block) AS block
FROM e4 AS x0
JOIN e5 AS x1
  ON x0.k0 = x1.k0;

DROP TABLE e4;

DROP TABLE e5;

CREATE TEMPORARY TABLE y1 AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('td,t,d->td', 'x0 * x2 / sqrt(x1 + f32(1e-05))', x0.block, x1.block, x2.block) AS block
FROM y AS x0
JOIN y_square AS x1
  ON x0.k0 = x1.k0
JOIN G_mlp AS x2
  ON x0.k1 = x2.k0;

DROP TABLE y_square;

CREATE TEMPORARY TABLE gate AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('td,df->tf', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM y1 AS x0
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
FROM y1 AS x0
JOIN W_up AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE y1;

CREATE TEMPORARY TABLE hidden AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('tf,tf->tf', 'silu(x0) * x1', x0.block, x1.block) AS block
FROM gate AS x0
JOIN up AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1;

DROP TABLE gate;

DROP TABLE up;

CREATE TEMPORARY TABLE mlp AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('tf,fd->td', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM hidden AS x0
JOIN W_down AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE hidden;

CREATE TEMPORARY TABLE e6 AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('td,td->td', 'x0 + x1', x0.block, x1.block) AS block
FROM y AS x0
JOIN mlp AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1;

DROP TABLE y;

DROP TABLE mlp;

SELECT * FROM e6;
---- program
program on host:0 host:1   68 kernel calls   2 exchanges   moves 2097152 bytes   peak 15466496 bytes per device

pipeline 0
  %0  = scan "X"  ->  f32[t=256/2 d=1024] Sharded(t)  "X"
        rows 2   calls 0   moved 0   held 524288 524288
  %1  = join %0 sum td->t x0 * x0 over (t=256/2 d=1024) work Sharded(t)  ->  f32[t=256/2] Sharded(t)  "e1"
        rows 2   calls 2   moved 0   held 512 512
  %2  = join %0 sum td->t f32(1) over (t=256/2 d=1024) work Sharded(t)  ->  f32[t=256/2] Sharded(t)  "e2"
        rows 2   calls 2   moved 0   held 512 512
  %3  = join %1, %2 keep t,t->t x0 / x1 over (t=256/2) work Sharded(t)  ->  f32[t=256/2] Sharded(t)  "square"
        rows 2   calls 2   moved 0   held 512 512
        free %1 %2
  %4  = scan "G_attention"  ->  f32[d=1024] Replicated  "G_attention"
        rows 1   calls 0   moved 0   held 4096 4096
  %5  = join %0, %3, %4 keep td,t,d->td x0 * x2 / sqrt(x1 + f32(1e-05)) over (t=256/2 d=1024) work Sharded(t)  ->  f32[t=256/2 d=1024] Sharded(t)  "x1"
        rows 2   calls 2   moved 0   held 524288 524288
        free %3 %4
  %6  = scan "W_q"  ->  f32[d=1024 h=16 e=32 c=2] Replicated  "W_q"
        rows 1   calls 0   moved 0   held 4194304 4194304
  %7  = join %5, %6 sum td,dhec->thec x0 * x1 over (t=256/2 h=16 e=32 c=2 d=1024) work Sharded(t)  ->  f32[t=256/2 h=16 e=32 c=2] Sharded(t)  "q"
        rows 2   calls 2   moved 0   held 524288 524288
        free %6
  %8  = scan "pair"  ->  f32[c=2 c2=2] Replicated  "pair"
        rows 1   calls 0   moved 0   held 16 16
  %9  = join %7, %8 sum [t h e c2],[c c2]->[t h e c] x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))))))) over (t=256/2 h=16 e=32 c=2 c2=2) work Sharded(t)  ->  f32[t=256/2 h=16 e=32 c=2] Sharded(t)  "q_turned"
        rows 2   calls 2   moved 0   held 524288 524288
        free %7
  %10 = scan "W_k"  ->  f32[d=1024 h=16 e=32 c=2] Replicated  "W_k"
        rows 1   calls 0   moved 0   held 4194304 4194304
  %11 = join %5, %10 sum td,dhec->thec x0 * x1 over (t=256/2 h=16 e=32 c=2 d=1024) work Sharded(t)  ->  f32[t=256/2 h=16 e=32 c=2] Sharded(t)  "k"
        rows 2   calls 2   moved 0   held 524288 524288
        free %10
  %12 = join %11, %8 sum [t h e c2],[c c2]->[t h e c] x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))))))) over (t=256/2 h=16 e=32 c=2 c2=2) work Sharded(t)  ->  f32[t=256/2 h=16 e=32 c=2] Sharded(t)  "k_turned"
        rows 2   calls 2   moved 0   held 524288 524288
        free %8 %11
  %13 = exchange %12  ->  f32[t=256/2 h=16 e=32 c=2] Replicated  "k_turned"
        rows 2   calls 0   moved 1048576   held 1048576 1048576
        free %12

pipeline 1
  %14 = join %9, %13 sum thec,shec->tsh x0 * x1 over (t=256/2 s=256/2 h=16 e=32 c=2) work Sharded(t)  ->  f32[t=256/2 s=256/2 h=16] Sharded(t)  "e3"
        rows 4   calls 4   moved 0   held 2097152 2097152
        free %9 %13
  %15 = map %14 case(s <= t, x0 / f32(sqrt(64.0)), f32(-inf))  ->  f32[t=256/2 s=256/2 h=16] Sharded(t)  "score"
        rows 4   calls 4   moved 0   held 2097152 2097152
        free %14
  %16 = join %15 max tsh->th x0 over (t=256/2 h=16 s=256/2) work Sharded(t)  ->  f32[t=256/2 h=16] Sharded(t)  "top"
        rows 2   calls 4   moved 0   held 8192 8192
  %17 = join %15, %16 keep tsh,th->tsh exp(x0 - x1) over (t=256/2 s=256/2 h=16) work Sharded(t)  ->  f32[t=256/2 s=256/2 h=16] Sharded(t)  "weight"
        rows 4   calls 4   moved 0   held 2097152 2097152
        free %15 %16
  %18 = join %17 sum tsh->th x0 over (t=256/2 h=16 s=256/2) work Sharded(t)  ->  f32[t=256/2 h=16] Sharded(t)  "total"
        rows 2   calls 4   moved 0   held 8192 8192
  %19 = join %17, %18 keep tsh,th->tsh x0 / x1 over (t=256/2 s=256/2 h=16) work Sharded(t)  ->  f32[t=256/2 s=256/2 h=16] Sharded(t)  "probability"
        rows 4   calls 4   moved 0   held 2097152 2097152
        free %17 %18
  %20 = scan "W_v"  ->  f32[d=1024 h=16 e=32 c=2] Replicated  "W_v"
        rows 1   calls 0   moved 0   held 4194304 4194304
  %21 = join %5, %20 sum td,dhec->thec x0 * x1 over (t=256/2 h=16 e=32 c=2 d=1024) work Sharded(t)  ->  f32[t=256/2 h=16 e=32 c=2] Sharded(t)  "v"
        rows 2   calls 2   moved 0   held 524288 524288
        free %5 %20
  %22 = exchange %21  ->  f32[t=256/2 h=16 e=32 c=2] Replicated  "v"
        rows 2   calls 0   moved 1048576   held 1048576 1048576
        free %21

pipeline 2
  %23 = join %19, %22 sum tsh,shec->thec x0 * x1 over (t=256/2 h=16 e=32 c=2 s=256/2) work Sharded(t)  ->  f32[t=256/2 h=16 e=32 c=2] Sharded(t)  "head"
        rows 2   calls 4   moved 0   held 524288 524288
        free %19 %22
  %24 = scan "W_o"  ->  f32[h=16 e=32 c=2 d=1024] Replicated  "W_o"
        rows 1   calls 0   moved 0   held 4194304 4194304
  %25 = join %23, %24 sum thec,hecd->td x0 * x1 over (t=256/2 d=1024 h=16 e=32 c=2) work Sharded(t)  ->  f32[t=256/2 d=1024] Sharded(t)  "attention"
        rows 2   calls 2   moved 0   held 524288 524288
        free %23 %24
  %26 = join %0, %25 keep td,td->td x0 + x1 over (t=256/2 d=1024) work Sharded(t)  ->  f32[t=256/2 d=1024] Sharded(t)  "y"
        rows 2   calls 2   moved 0   held 524288 524288
        free %0 %25
  %27 = join %26 sum td->t x0 * x0 over (t=256/2 d=1024) work Sharded(t)  ->  f32[t=256/2] Sharded(t)  "e4"
        rows 2   calls 2   moved 0   held 512 512
  %28 = join %26 sum td->t f32(1) over (t=256/2 d=1024) work Sharded(t)  ->  f32[t=256/2] Sharded(t)  "e5"
        rows 2   calls 2   moved 0   held 512 512
  %29 = join %27, %28 keep t,t->t x0 / x1 over (t=256/2) work Sharded(t)  ->  f32[t=256/2] Sharded(t)  "y_square"
        rows 2   calls 2   moved 0   held 512 512
        free %27 %28
  %30 = scan "G_mlp"  ->  f32[d=1024] Replicated  "G_mlp"
        rows 1   calls 0   moved 0   held 4096 4096
  %31 = join %26, %29, %30 keep td,t,d->td x0 * x2 / sqrt(x1 + f32(1e-05)) over (t=256/2 d=1024) work Sharded(t)  ->  f32[t=256/2 d=1024] Sharded(t)  "y1"
        rows 2   calls 2   moved 0   held 524288 524288
        free %29 %30
  %32 = scan "W_gate"  ->  f32[d=1024 f=2816] Replicated  "W_gate"
        rows 1   calls 0   moved 0   held 11534336 11534336
  %33 = join %31, %32 sum td,df->tf x0 * x1 over (t=256/2 f=2816 d=1024) work Sharded(t)  ->  f32[t=256/2 f=2816] Sharded(t)  "gate"
        rows 2   calls 2   moved 0   held 1441792 1441792
        free %32
  %34 = scan "W_up"  ->  f32[d=1024 f=2816] Replicated  "W_up"
        rows 1   calls 0   moved 0   held 11534336 11534336
  %35 = join %31, %34 sum td,df->tf x0 * x1 over (t=256/2 f=2816 d=1024) work Sharded(t)  ->  f32[t=256/2 f=2816] Sharded(t)  "up"
        rows 2   calls 2   moved 0   held 1441792 1441792
        free %31 %34
  %36 = join %33, %35 keep tf,tf->tf silu(x0) * x1 over (t=256/2 f=2816) work Sharded(t)  ->  f32[t=256/2 f=2816] Sharded(t)  "hidden"
        rows 2   calls 2   moved 0   held 1441792 1441792
        free %33 %35
  %37 = scan "W_down"  ->  f32[f=2816 d=1024] Replicated  "W_down"
        rows 1   calls 0   moved 0   held 11534336 11534336
  %38 = join %36, %37 sum tf,fd->td x0 * x1 over (t=256/2 d=1024 f=2816) work Sharded(t)  ->  f32[t=256/2 d=1024] Sharded(t)  "mlp"
        rows 2   calls 2   moved 0   held 524288 524288
        free %36 %37
  %39 = join %26, %38 keep td,td->td x0 + x1 over (t=256/2 d=1024) work Sharded(t)  ->  f32[t=256/2 d=1024] Sharded(t)  "e6"
        rows 2   calls 2   moved 0   held 524288 524288
        free %26 %38

emit %39
