// Folders that are dropped or chosen become one zip each, so that a run whose files
// belong together stays one upload; the server reads zips as their members. Nothing is
// compressed here: the zip is a stream of the files as they are, in the order of names.
import { downloadZip } from "../vendor/client-zip.js";

const isHidden = (path) => path.split("/").some((part) => part.startsWith("."));

// What was dropped: files, and folders as {name, files: [{path, file}]}.
export async function dropped(transfer) {
  // Entries must be taken before the first pause; the list is emptied after the event.
  const items = [...(transfer?.items ?? [])].filter((item) => item.kind === "file");
  const pairs = items.map((item) => [item.webkitGetAsEntry?.(), item.getAsFile()]);
  const found = [];
  for (const [entry, file] of pairs) {
    if (entry?.isDirectory) found.push({ name: entry.name, files: await below(entry, "") });
    else if (file) found.push(file);
  }
  return found;
}

// What was chosen with a folder chooser: the files of one folder, with their paths.
export function chosen(files) {
  const [first] = files;
  if (!first) return [];
  const named = [...files].map((file) => ({
    path: file.webkitRelativePath.split("/").slice(1).join("/"),
    file,
  }));
  const name = first.webkitRelativePath.split("/")[0];
  return [{ name, files: named.filter(({ path }) => !isHidden(path)) }];
}

// One file for a folder; the same files make the same bytes.
export async function packed({ name, files }) {
  const sorted = files.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const entries = sorted.map(({ path, file }) => ({ name: path, input: file }));
  const blob = await downloadZip(entries).blob();
  const lastModified = Math.max(...sorted.map(({ file }) => file.lastModified));
  return new File([blob], `${name}.zip`, { type: "application/zip", lastModified });
}

async function below(folder, prefix) {
  const found = [];
  for (const entry of await entriesOf(folder)) {
    const path = prefix + entry.name;
    if (entry.name.startsWith(".")) continue;
    if (entry.isDirectory) found.push(...(await below(entry, `${path}/`)));
    else found.push({ path, file: await fileOf(entry) });
  }
  return found;
}

// A reader gives up to a hundred entries at a time, and an empty list at the end.
async function entriesOf(folder) {
  const reader = folder.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return found;
    found.push(...some);
  }
}

function fileOf(entry) {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}
