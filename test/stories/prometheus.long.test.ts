import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { items } from '../helpers/list-server.ts'
import { ACME, createScene, EVERY_SECOND } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'

// A real Prometheus, of Debian's package of that name, scrapes a real `start`.

const HAS_PROMETHEUS = spawnSync('prometheus', ['--version'], { stdio: 'ignore' }).status === 0
if (!HAS_PROMETHEUS)
  process.stderr.write('the tests with a real Prometheus are skipped: it is not installed\n')

const CONFIG = path.resolve(import.meta.dirname, '../../config')
const running: ChildProcess[] = []

afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts a Prometheus with our alert rules that scrapes this address each second. Resolves with its own address. */
async function startPrometheus({ file }: Workspace, target: string): Promise<string> {
  const settings = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [path.join(CONFIG, 'prometheus-alerts.yaml')],
    scrape_configs: [{ job_name: 'admin-mirror', static_configs: [{ targets: [new URL(target).host] }] }],
  }
  // JSON is YAML, too.
  fs.writeFileSync(file('prometheus.yml'), JSON.stringify(settings))
  const child = spawn(
    'prometheus',
    [
      `--config.file=${file('prometheus.yml')}`,
      `--storage.tsdb.path=${file('prometheus')}`,
      '--web.listen-address=127.0.0.1:0',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  running.push(child)
  return new Promise((resolve, reject) => {
    let log = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text
      const [, address] = /msg="Listening on" address=(\S+)/.exec(log) ?? []
      if (address !== undefined && log.includes('ready to receive')) resolve(`http://${address}`)
    })
    child.once('close', () => reject(new Error(`Prometheus ended:\n${log}`)))
  })
}

interface Answer {
  status: string
  error?: string
  data: {
    alerts: { state: string; labels: Record<string, string>; annotations: Record<string, string> }[]
    result: { metric: Record<string, string>; value: [number, string] }[]
    activeTargets: { health: string; lastError: string }[]
  }
}

async function ask(prometheus: string, what: string): Promise<Answer> {
  return (await (await fetch(`${prometheus}/api/v1/${what}`)).json()) as Answer
}

/** Asks until the answer is as wanted. */
async function untilAnswer(prometheus: string, what: string, isWanted: (answer: Answer) => boolean) {
  for (;;) {
    const answer = await ask(prometheus, what)
    if (isWanted(answer)) return answer
    await sleep(100)
  }
}

/** The queries of the dashboard, with all organizations and collections chosen. */
function dashboardQueries(): string[] {
  const text = fs.readFileSync(path.join(CONFIG, 'grafana-dashboard.json'), 'utf8')
  const queries: string[] = []
  JSON.parse(text, (name, value: unknown) => {
    if (name === 'expr') queries.push(String(value).replaceAll(/\$(organization|collection)/g, '.*'))
    return value
  })
  return queries
}

describe.runIf(HAS_PROMETHEUS)('Prometheus', () => {
  it('reads the metrics, answers the queries of the dashboard, and calls somebody for a refused token', async () => {
    const { workspace, api } = await createScene({
      list: items(60),
      perPage: 25,
      settings: {
        organizations: [{ ...ACME, name: 'acme "1"\\' }],
        schedule: EVERY_SECOND,
        refresh: false,
        http: { port: 0 },
      },
    })
    const daemon = workspace.start(['start'])
    const { url } = await daemon.log(({ event }) => event === 'listening')
    const prometheus = await startPrometheus(workspace, String(url))

    const rows = await untilAnswer(
      prometheus,
      'query?query=admin_mirror_rows==60',
      ({ data }) => data.result.length > 0,
    )
    const { data: targets } = await ask(prometheus, 'targets')
    const queries = dashboardQueries()
    const answers = await Promise.all(
      queries.map((query) => ask(prometheus, `query?query=${encodeURIComponent(query)}`)),
    )
    api.instead = () => ({ status: 401, body: {} })
    const { data } = await untilAnswer(prometheus, 'alerts', ({ data: { alerts } }) =>
      alerts.some(({ state, labels }) => state === 'firing' && labels.alertname === 'AdminMirrorTokenHeld'),
    )
    daemon.kill('SIGTERM')
    await daemon.ended

    expect(rows.data.result[0]?.metric).toMatchObject({ organization: 'acme "1"\\', collection: 'orders' })
    expect(targets.activeTargets).toMatchObject([{ health: 'up', lastError: '' }])
    expect(queries.length).toBeGreaterThan(10)
    expect(answers.map(({ status, error }) => [status, error])).toEqual(
      queries.map(() => ['success', undefined]),
    )
    const alert = data.alerts.find(({ labels }) => labels.alertname === 'AdminMirrorTokenHeld')
    expect(alert?.annotations.summary).toBe('The token of acme "1"\\ was refused')
  })
})
