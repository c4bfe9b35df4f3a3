export interface BrokerOptions {
  /** Topics to create, with their partitions. */
  topics?: Record<string, number>
  /** Settings of the broker, such as { 'log.retention.hours': 1 }. */
  settings?: Record<string, string | number | boolean>
  /** Stops the clock at this time, such as '2026-11-17 10:05'. */
  clock?: string
  /** Whether a schema registry runs beside the broker. */
  registry?: boolean
  /** The command to run instead of ['horolog']. */
  command?: string[]
}

export class TestBroker {
  readonly bootstrap: string
  readonly control: string
  readonly registry?: string
  readonly pid: number
  call(method: string, path: string, body?: unknown): Promise<any>
  advance(by: string): Promise<{ ms: number; time: string; standing: boolean }>
  stop(): Promise<void>
}

export function startBroker(options?: BrokerOptions): Promise<TestBroker>
