// What pages do beyond plain HTML. Every page works without it, but does not change by itself.
import { keepTimes } from './times.js';
import { offerCopies } from './copy.js';
import { watch } from './live.js';
import { suggestSecretNames } from './suggest.js';

for (const bar of document.querySelectorAll('.tabs, .side nav')) { // on a phone they scroll sideways
  const current = bar.querySelector('[aria-current="page"]');
  if (current) bar.scrollLeft = current.offsetLeft - bar.offsetLeft - (bar.clientWidth - current.clientWidth) / 2;
}
keepTimes();
offerCopies(document);
suggestSecretNames(document);
if (document.body.dataset.live) {
  watch(document.body.dataset.live.split(' '));
}
