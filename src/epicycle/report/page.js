(function () {
  "use strict";
  var root = document.documentElement, button = document.getElementById("theme");
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  function dark() {
    var chosen = root.getAttribute("data-theme");
    return chosen ? chosen === "dark" : system.matches;
  }
  function label() { button.textContent = dark() ? "Light" : "Dark"; }
  // Storage may be forbidden for files: the choice then lasts as long as the page.
  try { var kept = localStorage.getItem("epicycle-theme"); if (kept) root.setAttribute("data-theme", kept); } catch (e) {}
  button.hidden = false;
  label();
  button.addEventListener("click", function () {
    var next = dark() ? "light" : "dark";
    root.setAttribute("data-theme", next);
    try { localStorage.setItem("epicycle-theme", next); } catch (e) {}
    label();
  });
  system.addEventListener("change", label);
  // On paper nothing can be unfolded.
  var folded = [];
  window.addEventListener("beforeprint", function () {
    folded = Array.prototype.slice.call(document.querySelectorAll("details:not([open])"));
    folded.forEach(function (d) { d.open = true; });
  });
  window.addEventListener("afterprint", function () { folded.forEach(function (d) { d.open = false; }); });
  // The section in view is marked in the table of contents.
  var links = {};
  document.querySelectorAll(".toc a").forEach(function (a) { links[a.hash.slice(1)] = a; });
  if ("IntersectionObserver" in window) {
    var seen = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (!entry.isIntersecting) return;
        Object.keys(links).forEach(function (id) { links[id].classList.toggle("here", id === entry.target.id); });
      });
    }, { rootMargin: "-10% 0px -80% 0px" });
    document.querySelectorAll("main > section").forEach(function (s) { seen.observe(s); });
  }
})();
