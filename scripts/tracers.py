"""Programs that run tests under a tracer and print "SUSPECT path first last", the likeliest lines first.

A line is likely when failing tests run it and passing ones run it less (Ochiai: Abreu et al., "On the accuracy of
spectrum-based fault localization", 2007). None of the programs holds an apostrophe, so a shell can quote it.
"""

# A run is one test.
PYTHON = """
import sys, os, pytest, collections
root = os.getcwd() + os.sep
runs, now = [], set()
def line(frame, event, arg):
    now.add((frame.f_code.co_filename, frame.f_lineno)); return line
def call(frame, event, arg):
    name = frame.f_code.co_filename
    inside = name.startswith(root) and "test" not in name[len(root):]
    return line(frame, event, arg) if inside else None
class Watch:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        out = yield
        if call.when == "call":
            runs.append((out.get_result().failed, frozenset(now)))
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        now.clear(); sys.settrace(call)
        yield
        sys.settrace(None)
pytest.main(["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[Watch()])
failed = sum(bad for bad, _ in runs)
bad, good = collections.Counter(), collections.Counter()
for was_bad, lines in runs:
    (bad if was_bad else good).update(lines)
score = {key: n / ((failed * (n + good[key])) ** 0.5) for key, n in bad.items()}
for (name, number), value in sorted(score.items(), key=lambda row: (-row[1], row[0]))[:250]:
    print("SUSPECT", os.path.relpath(name), number, number)
"""

# A run is what happens up to the end of one assertion, or of one module's loading; the last one failed. After the lines
# come the whole functions, for a branch that ought to have been taken and was not.
JAVASCRIPT = """
const fs = require("fs"), path = require("path"), assert = require("assert");
const { Session } = require("inspector");
const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
const root = process.cwd() + path.sep, runs = [], functions = new Map();
function take() {
  const lines = new Set();
  session.post("Profiler.takePreciseCoverage", (error, { result }) => {
    for (const { url, functions: found } of result) {
      const name = url.replace("file://", "");
      const own = path.relative(root, name);
      if (!name.startsWith(root) || /node_modules|test/.test(own)) continue;
      const text = fs.readFileSync(name, "utf8"), counts = new Int32Array(text.length);
      const lineAt = (offset) => text.slice(0, offset).split("\\n").length;
      for (const { ranges } of found) {
        for (const { startOffset, endOffset, count } of ranges) counts.fill(count, startOffset, endOffset);
        const [whole] = ranges;
        if (whole.count && whole.endOffset - whole.startOffset < text.length - 1)
          functions.set([own, lineAt(whole.startOffset), lineAt(whole.endOffset)].join(" "), runs.length);
      }
      let offset = 0;
      text.split("\\n").forEach((line, index) => {
        const first = offset + line.search(/\\S|$/);
        if (line.trim() && counts[first]) lines.add([own, index + 1, index + 1].join(" "));
        offset += line.length + 1;
      });
    }
  });
  runs.push(lines);
}
for (const [key, value] of Object.entries(assert))
  if (typeof value === "function" && /^[a-z]/.test(key))
    assert[key] = function (...given) { const out = value.apply(this, given); take(); return out; };
const Module = require("module"), load = Module._load;
let depth = 0;
Module._load = function (...given) {
  depth++;
  try { return load.apply(this, given); } finally { if (--depth === 1) take(); }
};
process.on("exit", () => {
  take();
  const last = runs[runs.length - 1], good = new Map();
  for (const run of runs.slice(0, -1)) for (const line of run) good.set(line, (good.get(line) || 0) + 1);
  const rows = [...last].sort((a, b) => (good.get(a) || 0) - (good.get(b) || 0)).slice(0, 250);
  const late = [...functions].filter(([, run]) => run === runs.length - 1).map(([place]) => place);
  for (const row of [...rows, ...late]) console.log("SUSPECT " + row);
});
require(path.resolve(process.argv[1]));
"""


def tracing(test: str) -> str:
    """The command that traces a test file, or the file of a test's id; "" for a language without a tracer."""
    path = test.split("::", maxsplit=1)[0]
    if path.endswith(".py"):
        return f"python -c '{PYTHON}' {path}"
    return f"node -e '{JAVASCRIPT}' {path}" if path.endswith(".js") else ""
