// What pages do beyond plain HTML. Every page works without it, but does not change by itself.
import { keepTimes } from './times.js';
import { offerCopies } from './copy.js';
import { watch } from './live.js';
import { replayEach } from './replay.js';
import { offerSaved } from './saved.js';
import { searchByKeys } from './search.js';
import { suggestSecretNames } from './suggest.js';

keepTimes();
offerCopies(document);
suggestSecretNames(document);
replayEach(document);
searchByKeys(document);
offerSaved(document);
if (document.body.dataset.live) {
  watch(document.body.dataset.live.split(' '));
}
