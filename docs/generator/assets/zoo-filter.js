// The search field of the zoo's index: hides the cards that lack one of the words, and families without cards.
addEventListener("DOMContentLoaded", () => {
  const field = document.querySelector(".zoo-filter input");
  if (!field) return;
  const cards = [...document.querySelectorAll(".zoo-card")];
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const card of cards) {
      const text = card.textContent.toLowerCase();
      card.hidden = !words.every((word) => text.includes(word));
    }
    for (const group of document.querySelectorAll(".zoo"))
      group.closest("section").hidden = !group.querySelector(".zoo-card:not([hidden])");
    const shown = cards.filter((card) => !card.hidden).length;
    document.querySelector(".zoo-filter output").value = `${shown} of ${cards.length}`;
  };
  field.addEventListener("input", filter);
  for (const tag of document.querySelectorAll(".zoo-card .tags button"))
    tag.addEventListener("click", () => {
      field.value = tag.textContent;
      filter();
      field.scrollIntoView({ block: "center" });
    });
  filter();
});
