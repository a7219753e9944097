"""Bodies that say what they want of one relation."""

from __future__ import annotations

CONDITIONS = {
    "equality": ("event STRING", "SELECT r.* FROM Reports r WHERE r.etype = event AND is_new(r)"),
    "equality, the other way round": ("event STRING", "SELECT id FROM Reports WHERE event = etype"),
    "no parameter": ("", "SELECT r.id, r.severity FROM Reports r WHERE is_new(r)"),
    "range": (
        "sym STRING, threshold DOUBLE",
        "SELECT q.symbol, q.price, q.volume FROM Quotes q WHERE q.symbol = sym AND q.price > threshold AND is_new(q)",
    ),
    "between": (
        "least INT, event STRING",
        "SELECT r.id FROM Reports r WHERE r.severity BETWEEN least AND least + 1 AND r.etype <> event AND is_new(r)",
    ),
    "null-safe equality": (
        "event STRING",
        "SELECT r.id, r.etype <=> event AS same FROM Reports r WHERE NOT (r.etype <=> event)",
    ),
    "or at the top": (
        "event STRING, least INT",
        "SELECT r.id FROM Reports r WHERE r.etype = event OR r.severity >= least",
    ),
    "parentheses": (
        "event STRING, least INT",
        "SELECT r.id FROM Reports r WHERE ((r.etype = event) AND ((is_new(r)) AND (r.severity > least OR r.x "
        "IS NULL)))",
    ),
    "in a list": (
        "event STRING",
        "SELECT r.id FROM Reports r WHERE r.etype IN (event, 'storm') AND r.severity IN (1, 2)",
    ),
    "like": ("event STRING", "SELECT r.id, r.etype LIKE concat(event, '%') AS l FROM Reports r WHERE is_new(r)"),
    "parameters in the select list": (
        "event STRING, least INT",
        "SELECT event AS wanted, least + 1 AS n, r.id FROM Reports r WHERE r.etype = event AND r.severity >= least",
    ),
    "only parameters in the select list": (
        "event STRING",
        "SELECT event AS wanted, r.id FROM Reports r WHERE is_new(r)",
    ),
    "case": (
        "event STRING, least INT",
        "SELECT r.id, CASE WHEN r.etype = event AND r.severity > least THEN 'both' WHEN r.etype = event THEN "
        "event ELSE 'no' END AS c FROM Reports r WHERE CASE WHEN r.severity > least THEN true ELSE r.etype = "
        "event END",
    ),
}
