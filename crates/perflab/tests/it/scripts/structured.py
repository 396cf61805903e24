"""The real fbscribelogger, with an IDL of our own."""

import fbscribelogger

IDL = """
struct PerflabTestLogEntry {
  1: optional i64 time,
  2: optional i64 weight,
  4: optional string model,
  6: optional double seconds,
  7: optional i64 graphs,
  9: optional bool cached,
  12: optional list<string> stack,
}
"""

if __name__ == "__main__":
    log = fbscribelogger.make_scribe_logger("PerflabTest", IDL)
    for number in range(3):
        log(model=f"m{number}", seconds=number + 0.5, graphs=number, cached=number > 0, stack=["main", "f"])
