// Filters that a person has named. They stay in this browser, each as the query of its page's address.

const KEY = 'millwright.filters';
const MOST = 20; // of a page
const PLACES = ['before', 'cursor', 'done']; // parts of an address that are no filter

function read() {
  try {
    return Object(JSON.parse(localStorage.getItem(KEY)));
  } catch {
    return {};
  }
}

// own returns the filters of this page.
function own() {
  const list = read()[location.pathname];
  return Array.isArray(list) ? list.filter((f) => typeof f?.name === 'string' && typeof f?.query === 'string') : [];
}

function keep(list) {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...read(), [location.pathname]: list.slice(0, MOST) }));
    return true;
  } catch {
    return false; // the browser keeps nothing
  }
}

// filter returns the query of this page without the place in its list.
function filter() {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of [...query]) if (PLACES.includes(name) || !value) query.delete(name);
  return query.toString();
}

const made = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

function show(box) {
  const now = filter();
  const list = own();
  const rows = list.map((f) => {
    const link = made('a', { href: `${location.pathname}?${new URLSearchParams(f.query)}`, textContent: f.name });
    if (f.query === now) link.setAttribute('aria-current', 'true');
    const remove = made('button', { type: 'button', className: 'small', textContent: '×' });
    remove.setAttribute('aria-label', `Remove the filter ${f.name}`);
    remove.addEventListener('click', () => { keep(own().filter((other) => other.name !== f.name)); show(box); });
    return made('li', {}, link, ' ', remove);
  });

  const parts = [];
  if (rows.length > 0) parts.push(made('p', { className: 'quiet', textContent: 'Saved filters:' }), made('ul', {}, ...rows));
  if (now && list.length < MOST && !list.some((f) => f.query === now)) parts.push(saver(box, now));
  box.replaceChildren(...parts);
}

// saver returns the form that gives the present filter a name.
function saver(box, now) {
  const name = made('input', { maxLength: 40, required: true, placeholder: 'Name of this filter', autocomplete: 'off' });
  name.setAttribute('aria-label', 'Name of this filter');
  const form = made('form', {}, name, made('button', { className: 'small', textContent: 'Save filter' }));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const list = own().filter((f) => f.name !== name.value.trim());
    if (name.value.trim() && keep([...list, { name: name.value.trim(), query: now }])) show(box);
    else name.setCustomValidity('This browser keeps nothing.');
  });
  return form;
}

export function offerSaved(root) {
  for (const form of root.querySelectorAll('form[data-saved]')) {
    if (form.nextElementSibling?.classList.contains('saved')) continue;
    const box = made('div', { className: 'saved' });
    form.after(box);
    show(box);
  }
}
