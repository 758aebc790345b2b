#!/usr/bin/env python3
"""Takes the texts out of trace files, before the files leave this machine.

    python3 strip_trace.py run.jsonl              writes run.stripped.jsonl beside it
    python3 strip_trace.py results/ --into out/   a folder or .zip, file by file

What stays: the keys of objects, numbers, true, false and null, and short texts under
keys of the list KEPT below (ids, roles, types, names, models, times, finish reasons).
Under name, agent, agent_name, task and task_id a text of up to 6 words and 100
characters stays. Under value, score and the like a verdict stays if it is one of the
words of SCORES (C, I, P, N, true, passed).
What goes: every other text. "[text of 42]" stands in its place; 42 is its length.
JSON inside a text is opened and treated alike. What cannot be read as JSON, JSON lines
or CSV is left out with a sentence; it is never copied as it is.

What this cannot know: a short name or id can itself say something. Look at the result.

It needs Python 3.8 and nothing else, opens no connection, starts no other program and
changes no file that is there already.
"""

import argparse
import ast
import csv
import gzip
import io
import json
import os
import re
import sys
import zipfile
import zlib


def words(text):
    """The set of the words of a text."""
    return set(text.split())


# Keys whose texts are kept, without "_", "-" and capitals; of a key with dots in it
# (gen_ai.request.model) the last part counts.
KEPT = words("""
    id ids uuid guid key traceid spanid parentid parentspanid parentuuid parentrunid
    runid sessionid conversationid threadid responseid requestid messageid callid
    toolcallid tooluseid toolcallids parentobservationid observationid invocationid
    taskid trialid instanceid itemid eventid stepid agentid userid groupid checkpointid
    checkpointns parentcheckpointid parenttooluseid rootspanid rootid previousresponseid
    turnid callindex promptid projectid experimentid datasetid sampleid evalid evalsetid
    customid sourcecallid sourceid leafuuid nodeid edgeid dottedorder sessionname
    internalid referenceid
    name names spanname label agentname toolname modelname functionname servicename
    taskname runname workflowname agent agents tool tools fromagent toagent author
    sender recipient source target agentrole entityname handoffs llmname displayname
    functionid nodename node startedby agenttype speaker worker assistant
    type types kind role subtype event eventtype runtype spantype spankind objecttype
    object category level status statuscode state mode channel op operation
    operationname operationid action observation partkind messagetype nativekind
    schemaversion trajectoryformat version format encoding mimetype requesttype
    choicetype class language currency unit lc phase visibility scope sdkname via order
    finish
    model models modelid provider providername system vendor responsemodel requestmodel
    modelprovider servicetier apitype deployment
    finishreason finishreasons stopreason terminationreason exitstatus exitreason reason
    stopsequence errortype exceptiontype errorcode outcome verdict code
    time times timestamp timestamps date datetime start end starttime endtime startedat
    completedat createdat updatedat finishedat started finished created updated begin
    observedat timestampiso starttimeunixnano endtimeunixnano timeunixnano timezone
    startdate enddate stoppedat
    task trial epoch domain dataset split benchmark evalsite rawname
""")
# Of these keys a name may have a few words; of the others only one word stays.
NAMES = words("""
    name names spanname label agentname toolname modelname functionname servicename
    taskname runname workflowname agent agents tool fromagent toagent agentrole
    entityname displayname nodename node speaker role type task model author source
    target status evalsite time timestamp start end createdat date
""")
# Below these keys lies what was given to a tool: nothing there is a name.
GIVEN = words("arguments args parameters params toolinput toolarguments")
LONG_NAMES = {"name", "agent", "agentname", "task", "taskid"}
# Under these keys a verdict is kept, if it is one of these words.
SCORED = words("value score scores grade result reward label passed correct success")
SCORES = words("""
    c i p n true false yes no pass passed fail failed correct incorrect partial success
    failure error resolved unresolved completed cancelled timeout skipped unknown none
""")
LONGEST, MOST_WORDS = 64, 4  # of a text that is kept; DOTTED below may be longer
LONGEST_NAME, MOST_NAME_WORDS = 100, 6  # under the keys LONG_NAMES
DOTTED = re.compile(r"(?:\d{8}T\d{6,18}Z[0-9a-f-]{36}\.?)+")  # LangSmith's order
TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z| ?[+-]\d\d:?\d\d)?"
)
NUMBER = re.compile(r"[+-]?\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?")
HEX = re.compile(r"(?:0x)?[0-9a-f]{16,32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DONE = re.compile(r"Executed [\w.\-]{1,64} [\w.:\-]{1,64}")  # a line of Harbor's
BLANK = re.compile(r"[ \t\r\n\ufeff]*")
MANY_BYTES = 50_000_000  # of one JSON text inside a text


def plain(key):
    """A key without its dots, capitals and separators: the form of the lists above."""
    return re.sub(r"[_\- ]", "", str(key).rsplit(".", 1)[-1]).lower()


def mark(text):
    """What stands in the place of a text."""
    return "[text of %d]" % len(text)


def may_stay(text, key):
    """Whether a text under this key is kept: a verdict, one short word, or a name."""
    form = plain(key)
    if form in SCORED and text.lower() in SCORES:
        return True
    longest, words = LONGEST, MOST_WORDS if form in NAMES else 1
    if form in LONG_NAMES:
        longest, words = LONGEST_NAME, MOST_NAME_WORDS
    if form not in KEPT or len(text) > longest or "\n" in text or "@" in text:
        return False
    return len(text.split()) <= words


def strip_text(text, key, is_given):
    """The text if its key is on the list, the opened JSON in it, or a mark."""
    opened = strip_inside(text, key, is_given)
    if opened is not None:
        return opened
    if not text or any(form.fullmatch(text) for form in (TIME, DOTTED, DONE)):
        return text
    if not is_given and (NUMBER.fullmatch(text) or HEX.fullmatch(text)):
        return text
    return text if may_stay(text, key) and not is_given else mark(text)


def strip_inside(text, key, is_given):
    """A text that holds JSON (or a Python literal), stripped; None when it holds none."""
    head = text.lstrip()[:1]
    if head not in ("{", "[", '"') or len(text) > MANY_BYTES:
        return None
    try:
        return json.dumps(strip(json.loads(text), key, is_given), ensure_ascii=False)
    except (ValueError, RecursionError):
        pass
    if head == '"':
        return None
    try:
        return repr(strip(ast.literal_eval(text), key, is_given))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def strip(value, key="", is_given=False):
    """A JSON value without its texts; `key` is the key that it stands under."""
    if isinstance(value, dict):
        return strip_object(value, key, is_given)
    if isinstance(value, (list, tuple)):
        return [strip(item, key, is_given) for item in value]
    if isinstance(value, str):
        return strip_text(value, key, is_given)
    return value


def strip_object(value, key, is_given):
    """An object; in a pair of key and value the key says what the value is."""
    said = value.get("key")
    if isinstance(said, str) and "value" in value and len(value) <= 3:
        is_given = is_given or plain(said) in GIVEN
        return {"key": strip_key(said), "value": strip(value["value"], said, is_given)}
    # The value of an attribute: {"stringValue": "..."} stands for the text itself.
    if set(value) <= {"stringValue", "intValue", "doubleValue", "boolValue", "arrayValue",
                      "values", "string_value", "array_value", "int_value"}:  # fmt: skip
        return {one: strip(item, key, is_given) for one, item in value.items()}
    return {
        strip_key(one): strip(item, one, is_given or plain(one) in GIVEN)
        for one, item in value.items()
    }


def strip_key(key):
    """A key as it is, unless someone wrote a sentence there."""
    if not isinstance(key, str):
        return key
    return key if len(key) <= 100 and len(key.split()) <= MOST_WORDS else mark(key)


class Unreadable(Exception):
    """Nothing of a file can be kept; the message says why."""


def strip_json(text, write):
    """Strip JSON, JSON lines, or values one after another. Returns how many were bad.

    A bad value is left out, and reading goes on at the next line.
    """
    decoder = json.JSONDecoder()
    at = bad = good = 0
    while True:
        at = BLANK.match(text, at).end()
        if at >= len(text):
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            bad += 1
            at = text.find("\n", at) + 1 or len(text)
            continue
        if isinstance(value, (dict, list)):
            write(json.dumps(strip(value), ensure_ascii=False) + "\n")
            good += 1
    if not good:
        raise Unreadable("it holds no JSON")
    return bad


def strip_csv(text, write):
    """Strip a table: each cell by the name of its column. Returns 0."""
    csv.field_size_limit(2**31 - 1)
    rows = csv.reader(io.StringIO(text, newline=""))
    names = next(rows, [])
    if len(names) < 2:
        raise Unreadable("it is neither JSON nor a table")
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(map(strip_key, names))
    given = [plain(name) in GIVEN for name in names]
    for row in rows:
        table.writerow(map(strip_text, row, names, given))
    write(out.getvalue())
    return 0


def strip_bytes(data, name):
    """The stripped bytes of one file and how many bad values were left out."""
    packed = data[:2] == b"\x1f\x8b"
    data = gzip.decompress(data) if packed else data
    is_wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    if b"\0" in data[:4096] and not is_wide:
        raise Unreadable("it is not text")
    text = data.decode("utf-16" if is_wide else "utf-8-sig", "replace")
    pieces = []
    is_table = re.sub(r"\.gz$", "", name.lower()).endswith(".csv")
    looks_like_json = text.lstrip()[:1] in ("{", "[")
    stripper = strip_csv if is_table and not looks_like_json else strip_json
    bad = stripper(text, pieces.append)
    made = "".join(pieces).encode("utf-8")
    return (gzip.compress(made) if packed else made), bad


def new_name(path):
    """The name beside a file that its stripped form gets: a.stripped.jsonl."""
    folder, name = os.path.split(path)
    stem, dot, ending = name.partition(".")
    return os.path.join(folder, stem + ".stripped" + dot + ending)


def is_new_name(name):
    """Whether a file or folder has the name that this script gives to its results."""
    return ".stripped." in name + "."


def write_new(path, data):
    """Write a file that is not there yet; returns False for one that is, unchanged."""
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    try:
        with open(path, "xb") as file:
            file.write(data)
    except FileExistsError:
        report(path, "is there already; it was not changed.")
        return False
    return True


def report(name, sentence):
    """One line about one file, for the person who runs this."""
    sys.stderr.write("%s: %s\n" % (name, sentence))


def strip_one(data, name):
    """The stripped bytes, with words on what is missing; or None, said on the screen."""
    try:
        made, bad = strip_bytes(data, name)
    except (Unreadable, OSError, EOFError, csv.Error, zlib.error) as error:
        report(name, "left out, because %s." % error)
        return None, ""
    lines = "1 bad line" if bad == 1 else "%d bad lines" % bad
    return made, "; %s left out" % lines if bad else ""


ZSTANDARD = (
    "Files left out, because this Python cannot unpack them: they are packed with "
    "Zstandard, as logs of Inspect are. Write the log as JSON and strip that: inspect log "
    "convert LOG.eval --to json --output-dir FOLDER, or inspect eval --log-format json."
)


def unpacked(archive, told):
    """The files of an archive with their bytes; each reason to leave out is said once."""
    for member in archive.infolist():
        why = "Files left out, because they are encrypted or damaged."
        try:
            if not member.is_dir():
                yield member.filename, archive.read(member)
            continue
        except NotImplementedError:
            why = ZSTANDARD
        except (RuntimeError, zipfile.BadZipFile, zlib.error):
            pass
        if why not in told:
            report(archive.filename, why)
            told.append(why)


def strip_zip(path, target):
    """Strip the files of an archive into a new archive."""
    count = 0
    whole = io.BytesIO()
    with zipfile.ZipFile(path) as old:
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as new:
            for name, data in unpacked(old, []):
                made, missing = strip_one(data, name)
                if made is not None:
                    new.writestr(name, made)
                    count += 1
                if missing:
                    report(name, "stripped%s." % missing)
    if not count or not write_new(target, whole.getvalue()):
        return 0
    files = "1 file" if count == 1 else "%d files" % count
    report(path, "%s stripped, written to %s" % (files, target))
    return count


def strip_file(path, target):
    """Strip one file or archive into `target`. Returns how many files were stripped."""
    try:
        if zipfile.is_zipfile(path):
            return strip_zip(path, target)
        with open(path, "rb") as file:
            made, missing = strip_one(file.read(), path)
    except zipfile.BadZipFile as error:
        report(path, "left out, because the archive is damaged (%s)." % error)
        return 0
    if made is None or not write_new(target, made):
        return 0
    report(path, "stripped%s, written to %s" % (missing, target))
    return 1


def strip_folder(folder, into):
    """Strip all files below a folder into another one, under the same names."""
    count = 0
    for here, folders, names in os.walk(folder):
        for name in [name for name in sorted(folders + names) if is_new_name(name)]:
            report(
                os.path.join(here, name), "left out, because it is stripped already."
            )
        folders[:] = sorted(
            name
            for name in folders
            if not is_new_name(name)
            and os.path.realpath(os.path.join(here, name)) != os.path.realpath(into)
        )
        for name in sorted(names):
            path = os.path.join(here, name)
            if not is_new_name(name) and not os.path.islink(path):
                target = os.path.join(into, os.path.relpath(path, folder))
                count += strip_file(path, target)
    return count


def strip_path(path, into):
    """Strip what a person named. Returns how many files were stripped."""
    if os.path.isdir(path):
        return strip_folder(path, into or path.rstrip("/\\") + ".stripped")
    name = os.path.basename(path)
    return strip_file(path, os.path.join(into, name) if into else new_name(path))


def main(arguments=None):
    """Strip what was named; 0 when at least one file was, 2 when one cannot be opened."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder or .zip")
    parser.add_argument("--into", metavar="FOLDER", help="where the new files go")
    chosen = parser.parse_args(arguments)
    count, unopened = 0, False
    for path in chosen.paths:
        try:
            count += strip_path(path, chosen.into)
        except OSError as error:
            unopened = True
            place = error.filename or path
            report(place, "cannot be opened or written: %s." % error.strerror)
    return 2 if unopened else 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
