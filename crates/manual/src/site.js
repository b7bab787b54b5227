// The other versions of the manual, as a list in the bar of each page. They are the folders beside this one, which
// versions.json names; without it, or from a file, there is no list.
"use strict";

(async () => {
  const root = new URL(path_to_root || "./", location.href);
  const response = await fetch(new URL("../versions.json", root)).catch(() => null);
  if (!response?.ok) return;
  const versions = await response.json();
  const here = decodeURIComponent(root.pathname.split("/").at(-2));
  const list = document.createElement("select");
  list.id = "versions";
  list.title = "Version of the manual";
  list.append(...versions.map((version) => new Option(version, version, false, version === here)));
  list.onchange = async () => {
    const other = new URL(`../${encodeURIComponent(list.value)}/`, root);
    const page = new URL(location.pathname.slice(root.pathname.length), other);
    // A page that this version does not have.
    const found = await fetch(page, { method: "HEAD" }).catch(() => null);
    location.href = found?.ok ? page : other;
  };
  document.querySelector(".right-buttons")?.prepend(list);
})();
