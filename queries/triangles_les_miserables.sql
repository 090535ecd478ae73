-- title: Triangles of Les Miserables: trace(A^3) counts each one six times
-- relation: edges i64[src=77 dst=77] from networkx les_miserables
SELECT SUM(a.val * b.val * c.val) // 6 AS val
FROM edges AS a
JOIN edges AS b ON a.dst = b.src
JOIN edges AS c ON b.dst = c.src AND c.dst = a.src
