// Keys of the search: / goes to the field, arrows move through the results, Escape goes back and leaves.

const writes = (element) => element.matches('input, textarea, select, [contenteditable]');

export function searchByKeys(root) {
  const field = root.getElementById('find');
  if (!field) return;
  const results = [...root.querySelectorAll('.results a:first-child')];

  root.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const active = root.activeElement;
    const at = results.indexOf(active);
    if (event.key === '/' && !writes(active)) {
      field.focus();
      field.select();
    } else if (event.key === 'Escape' && active === field) {
      field.value = '';
      field.blur();
    } else if (event.key === 'Escape' && at >= 0) {
      field.focus();
      field.select();
    } else if (event.key === 'ArrowDown' && (at >= 0 || active === field || active === root.body) && at + 1 < results.length) {
      results[at + 1].focus();
    } else if (event.key === 'ArrowUp' && at >= 0) {
      (results[at - 1] ?? field).focus();
    } else {
      return;
    }
    event.preventDefault();
  });
}
