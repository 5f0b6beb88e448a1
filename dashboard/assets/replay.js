// Replays the deliveries of a page one by one, and shows what became of each as it is known.

export function replayEach(root) {
  const form = root.querySelector('form[data-each]');
  if (!form) return;
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const bar = document.getElementById('progress');
    const said = document.getElementById('replayed');
    form.querySelector('button').disabled = true;
    bar.hidden = false;

    const all = new FormData(form).getAll('delivery');
    let made = 0;
    for (const [at, uid] of all.entries()) {
      said.textContent = `Replaying ${at + 1} of ${all.length}…`;
      const row = document.querySelector(`tr[data-delivery="${CSS.escape(uid)}"]`);
      const answered = await one(form, uid);
      if (!answered) {
        row.querySelector('[data-result]').textContent = 'no answer: the list of deliveries shows whether it was replayed';
        break;
      }
      row.replaceWith(answered);
      if (answered.dataset.made) made++;
      bar.value = at + 1;
    }

    said.textContent = `Replayed ${made} of ${all.length}.`;
    form.hidden = true;
  });
}

// one replays a delivery and returns its row of the page that the server answers with; null without one.
async function one(form, uid) {
  const body = new URLSearchParams({ csrf: form.elements.csrf.value, delivery: uid });
  try {
    const answer = await fetch(form.action, { method: 'POST', body, headers: { Accept: 'text/html' }, redirect: 'error' });
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    return page.querySelector(`tr[data-delivery="${CSS.escape(uid)}"]`);
  } catch {
    return null;
  }
}
