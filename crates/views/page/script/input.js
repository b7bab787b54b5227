// ---- input ----

$("close").addEventListener("click", closePanel);
$("as-graph").addEventListener("click", () => { view = "graph"; draw(); });
$("as-list").addEventListener("click", () => { view = "list"; draw(); });
$("search").addEventListener("input", () => { search = $("search").value.trim().toLowerCase(); draw(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (document.activeElement === $("search") && search) { $("search").value = ""; search = ""; draw(); }
    else closePanel();
  } else if (event.key === "/" && !event.ctrlKey && !event.metaKey && document.activeElement !== $("search")) {
    event.preventDefault();
    $("search").focus();
  }
});
addEventListener("hashchange", fromHash);
let resized = 0;
new ResizeObserver(([entry]) => {
  if (Math.abs(entry.contentRect.width - innerWidthOfMain) < 8) return;
  innerWidthOfMain = entry.contentRect.width;
  clearTimeout(resized);
  resized = setTimeout(() => { if (hasState) drawLanes(); }, 120);
}).observe($("jobs"));

innerWidthOfMain = $("graph").clientWidth || $("lanes").clientWidth;
