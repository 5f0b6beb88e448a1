// A Copy button behind everything that is meant to be copied.

async function copy(text, source) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const range = document.createRange(); // over plain http there is no clipboard: select it
  range.selectNodeContents(source);
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
  document.execCommand('copy');
}

export function offerCopies(root) {
  for (const source of root.querySelectorAll('.copy')) {
    if (source.nextElementSibling?.classList.contains('copier')) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copier';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      try {
        await copy(source.textContent, source);
        button.textContent = 'Copied';
      } catch {
        button.textContent = 'Select it and copy';
      }
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
    source.after(button);
  }
}
