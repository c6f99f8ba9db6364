// What the theme and Sphinx leave unsaid for those who listen to a page.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("nav details > summary")) {
    const page = summary.closest("li")?.querySelector("a")?.textContent.trim();
    summary.setAttribute("aria-label", `Pages of ${page}`);
  }
  // Arguments, one in a line: a list without terms.
  for (const part of document.querySelectorAll("dt.sig dl, dt.sig dl > dd")) part.setAttribute("role", "presentation");
});
