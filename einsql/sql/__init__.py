"""SQL over tensor relations to the einsum graph.

names      the tables and columns that a query block sees, and which of them a name means
scalars    SQL scalar expressions to ours
select     one SELECT: joins on labels, predicates, one value column
aggregate  GROUP BY and the aggregates of the value column
reader     statements, WITH, positions in the text
"""
