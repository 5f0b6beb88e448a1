// Live parts of a page. The server says that something changed; the page then asks for itself again and
// takes over the parts (data-part) that differ. What is open stays open, and the focus stays where it is.
import { offerCopies } from './copy.js';
import { offerSaved } from './saved.js';
import { freshen } from './times.js';

const note = document.getElementById('live-note');
let hide;

function tell(text) {
  note.textContent = text;
  note.classList.add('shown');
  clearTimeout(hide);
  hide = setTimeout(() => note.classList.remove('shown'), 4000);
}

const rowKey = (row) => row.querySelector('a')?.getAttribute('href');

// bare is what a part says, without what scripts added to it.
function bare(part) {
  const copy = part.cloneNode(true);
  for (const added of copy.querySelectorAll('.copier, .saved')) added.remove();
  for (const time of copy.querySelectorAll('time')) { time.textContent = ''; time.title = ''; delete time.dataset.exact; }
  for (const row of copy.querySelectorAll('.new')) { row.classList.remove('new'); if (!row.className) row.removeAttribute('class'); }
  for (const open of copy.querySelectorAll('details[open]')) open.removeAttribute('open');
  return copy.innerHTML;
}

// folds yields what can be opened in a part, each with what it is known by: whose it is, or else its place.
function* folds(part) {
  let place = 0;
  for (const d of part.querySelectorAll('details')) yield [d.dataset.of ?? place++, d];
}

// follows reports whether the reader is at the end of a part that grows there.
function follows(part) {
  const end = part.querySelector('#end').getBoundingClientRect();
  return end.bottom > 0 && end.top < innerHeight;
}

// questions returns the IDs of what the agent of a run asks.
const questions = () => [...document.querySelectorAll('[data-part=questions] > [id]')].map((q) => q.id);

// toEnd shows the end of a part that grows there.
function toEnd(part) {
  part.querySelector('#end').scrollIntoView({ block: 'end' });
}

// handle returns what a focused element is found by after its part has changed.
function handle(element) {
  const [name, value] = element.matches('.pick') ? ['value', element.value] : ['href', element.getAttribute('href')];
  return value && `[${name}="${CSS.escape(value)}"]`;
}

function take(part, next) {
  if (bare(part) === bare(next)) return 0;
  const active = document.activeElement;
  if (part.contains(active) && active.matches('input:not([type=checkbox]), textarea, select')) return 0; // somebody types
  const focused = part.contains(active) ? handle(active) : null;
  const ticked = [...part.querySelectorAll('.pick:checked')].map((box) => box.value);
  const known = new Set([...part.querySelectorAll('tbody tr')].map(rowKey));
  const opened = new Map([...folds(part)].map(([key, d]) => [key, d.open]));
  part.replaceChildren(...next.childNodes);
  for (const [key, d] of folds(part)) if (opened.has(key)) d.open = opened.get(key);
  let added = 0;
  if (known.size > 0 || part.dataset.part === 'log') {
    for (const row of part.querySelectorAll('tbody tr')) {
      if (!known.has(rowKey(row))) { row.classList.add('new'); added++; }
    }
  }
  for (const box of part.querySelectorAll('.pick')) box.checked = ticked.includes(box.value);
  if (focused) part.querySelector(focused)?.focus({ preventScroll: true });
  offerCopies(part);
  offerSaved(part);
  return added;
}

let busy = false;
let again = false;

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const answer = await fetch(document.body.dataset.self ?? location.href, { headers: { Accept: 'text/html' }, redirect: 'error' });
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      let added = 0;
      const followed = [...document.querySelectorAll('[data-follow]')].filter(follows); // before any part changes its size
      const asked = new Set(questions());
      for (const part of document.querySelectorAll('[data-part]')) {
        const next = page.querySelector(`[data-part="${CSS.escape(part.dataset.part)}"]`);
        if (next) added += take(part, next);
      }
      followed.forEach(toEnd);
      const fresh = questions().find((id) => !asked.has(id));
      if (fresh && followed.length > 0) document.getElementById(fresh).scrollIntoView();
      freshen();
      if (added > 0) tell(added === 1 ? '1 new row' : `${added} new rows`);
    }
  } catch {
    // the server is away, or the session is over: the stream will say which
  }
  busy = false;
  if (again) { again = false; refresh(); }
}

export function watch(topics) {
  const address = '/live?' + topics.map((t) => 'on=' + encodeURIComponent(t)).join('&');
  let stream;
  const open = () => {
    stream = new EventSource(address);
    stream.addEventListener('open', async () => {
      await refresh(); // whatever changed before the stream began
      document.body.dataset.watching = 'yes';
    });
    stream.addEventListener('changed', refresh);
    stream.addEventListener('ended', () => {
      stream.close();
      note.replaceChildren('You have been signed out. ', Object.assign(document.createElement('a'), { href: '/login', textContent: 'Sign in' }));
      note.classList.add('shown');
      clearTimeout(hide);
    });
  };
  open();
  if (!location.hash) document.querySelectorAll('[data-follow=live]').forEach(toEnd);
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      stream.close();
    } else if (stream.readyState === EventSource.CLOSED) {
      open();
    }
  });
  addEventListener('pagehide', () => stream.close());
}
