// A name for a new webhook's secret, as long as nobody enters another.

function secretName(webhook, taken) {
  let base = webhook.trim().toUpperCase().replace(/[^A-Z0-9]/g, '_') + '_SECRET';
  if (/^[0-9]/.test(base)) base = 'WEBHOOK_' + base;
  let name = base;
  for (let i = 2; taken.has(name); i++) name = `${base}_${i}`;
  return name;
}

export function suggestSecretNames(root) {
  for (const field of root.querySelectorAll('[data-secret-of]')) {
    const webhook = root.getElementById(field.dataset.secretOf);
    const taken = new Set(Array.from(field.list.options, (option) => option.value));
    let suggested = field.value && field.value === secretName(webhook.value, taken) ? field.value : ''; // a form that came back
    webhook.addEventListener('input', () => {
      if (field.value !== suggested) return;
      field.value = suggested = webhook.value.trim() && secretName(webhook.value, taken);
    });
  }
}
