// The versions of the site that are beside this one, in a menu. ../versions.js lists them; it is a script, not JSON, so
// that pages opened from disk can read it.
addEventListener("DOMContentLoaded", () => {
  const root = document.documentElement.dataset.content_root;
  const list = document.createElement("script");
  list.src = `${root}../versions.js`;
  list.addEventListener("load", () => {
    const here = new URL(root, location.href);
    const current = here.pathname.split("/").at(-2);
    const page = location.href.slice(here.href.length);
    const label = document.createElement("label");
    label.className = "versions";
    label.textContent = "Version ";
    const menu = document.createElement("select");
    for (const name of window.tracrVersions) menu.add(new Option(name, name, false, name === current));
    menu.addEventListener("change", () => (location.href = new URL(`../${menu.value}/${page}`, here)));
    label.append(menu);
    document.querySelector(".sidebar-search-container")?.before(label);
  });
  document.head.append(list);
});
