// Crawlee in its own process: follows links on the seeds' hosts, appends the pages to one file, prints how many.
//
//     node crawlee.cjs SEEDS BODIES REQUESTS_AT_ONCE REJECTED_EXTENSION,...
//
// NODE_PATH names the folder with @crawlee/cheerio, CRAWLEE_STORAGE_DIR where it keeps its queue.

const fs = require('node:fs')
const { CheerioCrawler, log } = require('@crawlee/cheerio')

const [seeds, bodies, atOnce, extensions] = process.argv.slice(2)
const urls = fs.readFileSync(seeds, 'utf8').split(/\s+/).filter(Boolean)
const rejected = new RegExp(`\\.(${extensions.replaceAll(',', '|')})$`, 'i')
const output = fs.openSync(bodies, 'a')
let stored = 0

log.setLevel(log.LEVELS.OFF)
const crawler = new CheerioCrawler({
  minConcurrency: Number(atOnce),
  maxConcurrency: Number(atOnce),
  maxRequestRetries: 0,
  respectRobotsTxtFile: true,
  useSessionPool: false,
  additionalMimeTypes: ['*/*'],
  ignoreHttpErrorStatusCodes: [404],
  async requestHandler({ body, enqueueLinks }) {
    fs.writeSync(output, body)
    stored += 1
    await enqueueLinks({
      selector: 'a, area, frame, iframe',
      strategy: 'same-hostname',
      exclude: [rejected],
    })
  },
})

crawler.run(urls).then(() => console.log(stored))
