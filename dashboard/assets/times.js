// Times as people say them, kept true while the page is open; the exact one, in the reader's own zone, is
// the tooltip.

function say(then) {
  const seconds = Math.round((Date.now() - then) / 1000);
  const past = seconds >= 0;
  const s = Math.abs(seconds);
  if (s < 10) return 'just now';
  const text = s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
  return past ? `${text} ago` : `in ${text}`;
}

export function freshen() {
  for (const time of document.querySelectorAll('time[datetime]')) {
    const then = Date.parse(time.dateTime);
    if (Number.isNaN(then)) continue;
    if (!time.dataset.exact) {
      time.dataset.exact = 'yes';
      time.title = `${new Date(then).toLocaleString()} (${time.title})`;
    }
    if (Math.abs(Date.now() - then) < 14 * 86400000) time.textContent = say(then);
  }
}

export function keepTimes() {
  freshen();
  setInterval(freshen, 10000);
}
