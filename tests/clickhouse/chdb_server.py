"""ClickHouse's HTTP interface in front of chdb, which is a current ClickHouse without one.

usage: chdb_server.py FOLDER PORT
"""

import http.server
import os
import sys
import tempfile
import urllib.parse

from chdb import session


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # the name that the base class calls
        body = self.rfile.read(int(self.headers["Content-Length"]))
        arguments = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        sql = arguments.get("query")
        try:
            SESSION.query(f"USE {arguments.get('database', 'default')}")
            if sql is None:
                answer = SESSION.query(body.decode(), "TSV").bytes() or b""
            else:
                answer = insert(sql, body, arguments)
            status = 200
        except Exception as error:  # whatever chdb raises, it is what the server says
            status, answer = 500, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def insert(sql, body, arguments):
    assert arguments.get("async_insert") == "0", "a current server is told to write at once"
    head, form = sql.rsplit(" FORMAT ", 1)
    with tempfile.NamedTemporaryFile(dir=FOLDER, suffix=".bin") as file:
        file.write(body)
        file.flush()
        return SESSION.query(f"{head} FROM INFILE '{file.name}' FORMAT {form}").bytes() or b""


FOLDER = sys.argv[1]
os.makedirs(FOLDER, exist_ok=True)
SESSION = session.Session(FOLDER)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
