// What Sphinx's search counts: headings first, then pages with the word in a heading, then text; of equals, guides before references.
// So "ratio" finds the ratio test first.
var Scorer = {
  score: ([page, title, anchor, description, score, file, kind]) =>
    score + (kind === "title" ? 100 : 0) - (page.startsWith("reference/") ? 1 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 60,
  partialTitle: 20,
  term: 5,
  partialTerm: 2,
};
