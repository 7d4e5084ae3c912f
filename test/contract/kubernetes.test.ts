/**
 * The manifests of deploy/kubernetes name the same pods, ports and labels. Without a cluster, nothing else would
 * notice a difference.
 */
import { execFileSync } from 'node:child_process'
import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { fencesOf } from '../tools/markdown.ts'
import { findFiles, readSource, repositoryRoot } from '../tools/source-files.ts'

type Labels = Readonly<Record<string, string>>
interface Selector {
  matchLabels?: Labels
  matchExpressions?: { key: string; operator: string; values: string[] }[]
}

interface Pod {
  metadata: { labels: Labels }
  spec: {
    containers: { ports?: { name: string; containerPort: number }[] }[]
    topologySpreadConstraints?: { topologyKey: string; labelSelector: Selector }[]
  }
}

interface Manifest {
  kind: string
  apiVersion: string
  metadata: { name: string }
  spec: {
    template: Pod
    selector: Selector & Labels
    podSelector: Selector
    ingress?: { from?: { namespaceSelector: Selector }[]; ports: { port: string }[] }[]
    policyTypes: string[]
    egress?: { ports: { port: number }[] }[]
    ports: { targetPort: string }[]
    podMetricsEndpoints: { port: string; relabelings: { targetLabel: string }[] }[]
    scaleTargetRef: { kind: string; apiVersion: string; name: string }
    minReplicas: number
    replicas: number
  }
}

const files = findFiles('deploy/kubernetes/*.yaml')
const manifests = files
  .filter((file) => !/kustomization|\/postern\.yaml/.test(file))
  .flatMap((file) =>
    parseAllDocuments(readSource(file)).map((document) => {
      expect(document.errors, file).toEqual([])
      return document.toJS() as Manifest
    }),
  )
const ofKind = (kind: string) => manifests.filter((one) => one.kind === kind)
const workloads = [...ofKind('Deployment'), ...ofKind('Job')]

const selects = ({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels) =>
  Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
  matchExpressions.every(
    ({ key, operator, values }) => operator === 'In' && values.includes(labels[key] ?? ''),
  )
/** Names of the workloads whose pods it selects. */
const selectedBy = (selector: Selector) =>
  workloads
    .filter(({ spec }) => selects(selector, spec.template.metadata.labels))
    .map(({ metadata }) => metadata.name)
const portsOf = (name: string) =>
  workloads
    .filter(({ metadata }) => metadata.name === name)
    .flatMap(({ spec }) => spec.template.spec.containers.flatMap(({ ports = [] }) => ports))
    .map(({ name }) => name)

test('every file but the examples is a resource, and each object has a kind, a version and a separate name', () => {
  const { resources } = parse(readSource('deploy/kubernetes/kustomization.yaml'))
  const others = ['kustomization.yaml', 'postern.yaml']
  const expected = files
    .map((file) => basename(file))
    .filter((file) => !file.includes('.example.') && !others.includes(file))
  expect([...resources].sort()).toEqual(expected.sort())
  const names = manifests.map(({ apiVersion, kind, metadata }) => [apiVersion, kind, metadata.name])
  expect(names.flat().every((text) => /\S/.test(text))).toBe(true)
  expect(new Set(names.map(String)).size).toBe(names.length)
})

describe('selectors and ports', () => {
  test('each Deployment selects its own pods, and so do its budget and its spread over nodes and zones', () => {
    for (const { metadata, spec } of ofKind('Deployment')) {
      expect(selectedBy(spec.selector)).toEqual([metadata.name])
      const budget = ofKind('PodDisruptionBudget').find(
        (one) => one.metadata.name === metadata.name,
      )
      expect(selectedBy(budget?.spec.selector ?? {})).toEqual([metadata.name])
      const spread = spec.template.spec.topologySpreadConstraints ?? []
      expect(spread.map(({ topologyKey }) => topologyKey)).toEqual([
        'kubernetes.io/hostname',
        'topology.kubernetes.io/zone',
      ])
      for (const { labelSelector } of spread)
        expect(selectedBy(labelSelector)).toEqual([metadata.name])
    }
  })

  test('the Service leads to the public port of the API alone', () => {
    const [service, ...others] = ofKind('Service')
    expect(others).toEqual([])
    expect(selectedBy({ matchLabels: service?.spec.selector ?? {} })).toEqual(['postern-api'])
    expect(service?.spec.ports.map(({ targetPort }) => targetPort)).toEqual(['http'])
    expect(portsOf('postern-api')).toContain('http')
  })

  test('every workload has a NetworkPolicy: the ingress reaches the public port, Prometheus the admin port, and calls go to known ports', () => {
    const [policies, outgoing] = ['Ingress', 'Egress'].map((type) =>
      ofKind('NetworkPolicy').filter(({ spec }) => spec.policyTypes.includes(type)),
    ) as [Manifest[], Manifest[]]
    const names = workloads.map(({ metadata }) => metadata.name).sort()
    expect(outgoing.flatMap(({ spec }) => selectedBy(spec.podSelector)).sort()).toEqual(names)
    for (const { egress = [] } of outgoing.map(({ spec }) => spec)) {
      const called = egress.flatMap(({ ports }) => ports.map(({ port }) => Number(port)))
      expect(called).toEqual(expect.arrayContaining([53, 5432, 6379, 443]))
    }
    expect(policies.flatMap(({ spec }) => selectedBy(spec.podSelector)).sort()).toEqual(
      workloads.map(({ metadata }) => metadata.name).sort(),
    )
    for (const { metadata, spec } of policies) {
      const allPorts = (spec.ingress ?? []).flatMap(({ ports }) => ports.map(({ port }) => port))
      expect(allPorts).toEqual(portsOf(metadata.name))
      for (const { from = [], ports } of spec.ingress ?? []) {
        const namespace = ports[0]?.port === 'http' ? 'ingress-nginx' : 'monitoring'
        expect(from.map(({ namespaceSelector }) => namespaceSelector.matchLabels)).toEqual([
          { 'kubernetes.io/metadata.name': namespace },
        ])
      }
    }
  })

  test('the PodMonitor finds the admin port of APIs and workers, under the job that the alerts name', () => {
    const [monitor] = ofKind('PodMonitor')
    const found = selectedBy(monitor?.spec.selector ?? {})
    expect(found.sort()).toEqual(['postern-api', 'postern-worker'])
    for (const { port, relabelings } of monitor?.spec.podMetricsEndpoints ?? []) {
      for (const name of found) expect(portsOf(name)).toContain(port)
      expect(relabelings).toContainEqual({ targetLabel: 'job', replacement: 'postern' })
    }
    expect(readSource('deploy/prometheus/alerts.yml')).toContain('job="postern"')
  })

  test('the autoscaler scales a Deployment that is here, from no fewer pods than it has', () => {
    const [scaler] = ofKind('HorizontalPodAutoscaler')
    const { scaleTargetRef: target, minReplicas = 0 } = scaler?.spec ?? {}
    const scaled = workloads.find(({ metadata }) => metadata.name === target?.name)
    expect(scaled).toMatchObject({ kind: target?.kind, apiVersion: target?.apiVersion })
    expect(minReplicas).toBeGreaterThanOrEqual(scaled?.spec.replicas ?? Number.POSITIVE_INFINITY)
  })
})

test.each(['docs/guides/go-live.md', 'docs/zh/guides/go-live.md'])(
  '%s: the lines for the operator make a PrometheusRule of the alerts',
  (page) => {
    const block = fencesOf(page).find(({ text }) => text.includes('kind: PrometheusRule'))
    const lines = (block?.text ?? '')
      .replace(/^kubectl .*$/gm, '')
      .replace('kubectl apply -f -', 'cat')
    const made = execFileSync('bash', ['-c', lines], { cwd: repositoryRoot, encoding: 'utf8' })
    const { spec, ...rule } = parse(made)
    expect(rule).toEqual({
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PrometheusRule',
      metadata: { name: 'postern', namespace: 'postern' },
    })
    expect(spec).toEqual(parse(readSource('deploy/prometheus/alerts.yml')))
  },
)
