"""The fields of JSON answers about the host that other programs rely on: their names and what
stands in them, tried on answers of real runs. What may be unknown (a share of too few samples)
is null there, and never left out."""

NUMBER, TEXT, WHOLE = (int, float), str, int
NUMBER_OR_NULL = (int, float, type(None))


class Percent:
    """Of something; `unknown`: may be null."""

    def __init__(self, unknown=False):
        self.unknown = unknown


SHARES = {"file": TEXT, "line": WHOLE, "function": TEXT, "samples": WHOLE}
FIELDS = {
    "gaps": {
        "gpu": {"explained_percent": Percent()},
        "causes[]": {"cause": TEXT, "total_ms": NUMBER},
        "gaps[]": {
            "cause": TEXT, "total_ms": NUMBER,
            "doing[]": {**SHARES, "share_percent": Percent(True), "self_percent": Percent(True),
                        "low_percent": Percent(True), "high_percent": Percent(True)}}},
    "hot": {
        "lines[]": {"role": TEXT, **SHARES, "self_percent": Percent(True),
                    "total_percent": Percent(True), "running_percent": Percent()}},
    "data": {
        "workers": WHOLE, "batches": WHOLE,
        "lines[]": {"role": TEXT, **SHARES, "share_percent": Percent(True),
                    "low_percent": Percent(True), "high_percent": Percent(True)}},
    "regions": {
        "regions[]": {"name": TEXT, "count": WHOLE, "total_ms": NUMBER}},
    "traced regions": {
        "regions[]": {"name": TEXT, "count": WHOLE, "total_ms": NUMBER, "gpu_busy_ms": NUMBER,
                      "causes[]": {"cause": TEXT, "total_ms": NUMBER}}},
    "waits": {"host_waits[]": {"kind": TEXT, "total_ms": NUMBER}, "data_exact": bool},
    "steps": {  # nobody knows when the first one began
        "steps[]": {"number": WHOLE, "duration_ms": NUMBER_OR_NULL, "data_ms": NUMBER_OR_NULL}},
}


def check(test, what, answer):
    """Fails `test` where a field of FIELDS[what] is missing or is not what it should be. Of
    each list at least one row has to be there, or nothing would be tried."""
    _check(test, FIELDS[what], [answer], what)


def _check(test, fields, rows, where):
    for name, kind in fields.items():
        key, a_list, path = name.removesuffix("[]"), name.endswith("[]"), f"{where}.{name}"
        for row in rows:
            test.assertIn(key, row, where)
        values = [row[key] for row in rows]
        if isinstance(kind, dict):
            inner = [one for value in values for one in (value if a_list else [value])]
            test.assertTrue(inner, f"{path}: no row")
            _check(test, kind, inner, path)
            continue
        for value in values:
            _check_value(test, kind, value, path)
    if "share_percent" in fields or "total_percent" in fields:
        for row in rows:
            _check_share(test, row, where)


def _check_value(test, kind, value, path):
    if isinstance(kind, Percent):
        if value is None and kind.unknown:
            return
        test.assertIsInstance(value, NUMBER, path)
        test.assertTrue(-1e-6 <= value <= 100 + 1e-6, (path, value))
        return
    test.assertIsInstance(value, kind, path)


def _check_share(test, row, where):
    share = row["share_percent"] if "share_percent" in row else row["total_percent"]
    if share is None:  # of fewer than 30 samples, and then the others, too
        test.assertIsNone(row["low_percent"], where)
        test.assertIsNone(row["high_percent"], where)
        return
    test.assertTrue(row["low_percent"] <= share <= row["high_percent"], (where, row))
    if row.get("self_percent") is not None:
        test.assertLessEqual(row["self_percent"], share + 1e-6, (where, row))
