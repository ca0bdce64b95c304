// Every virtual user asks for the first PAGES pages of the recording, one after the other; all users begin at once.
import http from 'k6/http';
import { check } from 'k6';
import { Counter, Trend } from 'k6/metrics';

const site = `http://${__ENV.ADDRESS}:${__ENV.PORT}`;
const pages = JSON.parse(open('./pages.json')).slice(0, +__ENV.PAGES);

export const options = {
  scenarios: {
    users: { executor: 'per-vu-iterations', vus: +__ENV.USERS, iterations: 1, maxDuration: '24h' },
  },
  summaryTrendStats: ['avg', 'min', 'max', 'p(50)', 'p(95)', 'p(99)'],
};

const response = new Trend('response'); // ms, of right answers
const clock = new Trend('clock'); // ms since 1970, of all requests' beginnings and ends
const right = new Counter('right');

// What is wrong with the answer; '' if nothing.
function wrong(answer, page) {
  if (answer.error) return answer.error;
  if (answer.status !== 200) return `${page.path}: status ${answer.status}, 200 was expected`;
  if (!answer.body.includes(page.shows)) return `${page.path} is answered with another page`;
  if (!answer.body.trimEnd().endsWith('</html>')) return `${page.path} is cut off`;
  return '';
}

export default function () {
  for (const page of pages) {
    const begun = Date.now();
    const answer = http.get(site + page.path, { timeout: '1h', redirects: 0 });
    clock.add(begun);
    clock.add(Date.now());
    const cause = wrong(answer, page);
    if (cause) {
      check(null, { [cause]: () => true }); // k6 counts checks by name, so the summary has every cause
    } else {
      // k6's duration begins when there is a connection. A user's begins before, and `blocked` is what is missing.
      right.add(1);
      response.add(answer.timings.blocked + answer.timings.duration);
    }
  }
}

export function handleSummary(data) {
  const value = (metric, key) => (data.metrics[metric] ? data.metrics[metric].values[key] : 0);
  const all = +__ENV.USERS * pages.length; // whatever was asked: a user who gave up early has failed too
  const failed = all - value('right', 'count');
  const out = {};
  if (failed > 0) {
    const causes = data.root_group.checks.sort((a, b) => b.passes - a.passes);
    const cause = causes.length > 0 ? causes[0].name : 'never asked, or the answer could not be looked at';
    out.stderr = `${failed} of ${all} requests failed: ${cause}\n`;
  }
  if (all > failed) {
    out.stdout = JSON.stringify({
      mean: value('response', 'avg') / 1000,
      p50: value('response', 'p(50)') / 1000,
      p95: value('response', 'p(95)') / 1000,
      p99: value('response', 'p(99)') / 1000,
      errors: failed,
      requests: all,
      requests_per_second: (all * 1000) / (value('clock', 'max') - value('clock', 'min')),
    }) + '\n';
  }
  return out;
}
