// spider-rs in its own process: crawls each seed's host, appends the pages to one file, prints how many.
//
//     node spider.cjs SEEDS BODIES HOSTS_AT_ONCE REJECTED_EXTENSION,...
//
// NODE_PATH names the folder with @spider-rs/spider-rs.

const fs = require('node:fs')
const { Website } = require('@spider-rs/spider-rs')

const [seeds, bodies, hostsAtOnce, extensions] = process.argv.slice(2)
const urls = fs.readFileSync(seeds, 'utf8').split(/\s+/).filter(Boolean)
const output = fs.openSync(bodies, 'a')
let stored = 0

async function crawlHost(url) {
  const website = new Website(url)
    .withUserAgent('spider')
    .withRespectRobotsTxt(true)
    .withBlacklistUrl([`\\.(${extensions.replaceAll(',', '|')})$`])
    .build()
  await website.crawl((error, page) => {
    if (!error) {
      fs.writeSync(output, page.content)
      stored += 1
    }
  })
}

async function main() {
  const turn = urls[Symbol.iterator]()
  await Promise.all(Array.from({ length: Number(hostsAtOnce) }, async () => {
    for (const url of turn) await crawlHost(url)
  }))
  console.log(stored)
}

main()
