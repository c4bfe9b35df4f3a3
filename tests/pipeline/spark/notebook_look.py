"""What a user of a notebook sees below each cell: a kernel of Jupyter, cells as they are typed, and the kernel's own messages, as JSON.

notebook_look.py BOOTSTRAP DATA_FOLDER
"""

import json
import sys
from queue import Empty

from jupyter_client.manager import KernelManager

CELLS = """
from horolog import pipeline
spark = pipeline.session("local[1]", quick=True, **{"spark.log.level": "ERROR"})
--
spark.read.format("horolog").load(FOLDER).show(1)
--
rows = spark.read.format("horolog").options(**{"kafka.bootstrap.servers": BOOTSTRAP, "subscribe": "t"}).load()
rows.where("offset < 5").count()
--
import os, tempfile
from horolog.pipeline.spark import notebook
shown = os.path.join(tempfile.mkdtemp(), "shown")
write = notebook._listening._write

def note(text):
    write(text)
    if "1 of 4 tasks" in text:
        open(shown, "w").close()

def wait_until_it_is_shown(row):
    import os, time
    deadline = time.monotonic() + 120
    while row.id and not os.path.exists(shown) and time.monotonic() < deadline:
        time.sleep(0.1)

notebook._listening._write = note
spark.range(0, 4, 1, 4).foreach(wait_until_it_is_shown)
--
spark.stop()
"""


def main(bootstrap, folder):
    manager = KernelManager(kernel_cmd=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"])
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    client.execute(f"BOOTSTRAP, FOLDER = {bootstrap!r}, {folder!r}", reply=True, timeout=60)
    shown = []
    try:
        for cell in CELLS.split("--\n"):
            parts = {"stdout": "", "stderr": "", "error": ""}
            asked = client.execute(cell)
            while True:
                try:
                    message = client.get_iopub_msg(timeout=300)
                except Empty:
                    break
                if message["parent_header"].get("msg_id") != asked:
                    continue
                content = message["content"]
                if message["msg_type"] == "stream":
                    parts[content["name"]] += content["text"]
                elif message["msg_type"] == "error":
                    parts["error"] += content["ename"] + ": " + content["evalue"]
                elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                    break
            shown.append(parts)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    print(json.dumps(shown))


main(*sys.argv[1:])
