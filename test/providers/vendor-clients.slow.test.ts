/**
 * The vendors' own clients as judges of Postern's requests. Each sends the same message as Postern to the same far
 * end, which checks the signature. A far end that accepts both has read the vendor's rules as the vendor does.
 */
import { Agent } from 'node:http'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { installExamples } from '../examples/run-example.ts'
import * as aliyun from './cases/aliyun.ts'
import * as aliyunPnvs from './cases/aliyun-pnvs.ts'
import * as tencent from './cases/tencent.ts'
import * as twilio from './cases/twilio.ts'
import { withProvider } from './conformance.ts'

const clients = {
  '@alicloud/dysmsapi20170525': '4.6.0',
  '@alicloud/dypnsapi20170525': '2.0.0',
  'tencentcloud-sdk-nodejs-sms': '4.1.306',
  twilio: '6.2.0',
}
const load = createRequire(join(await installExamples([], clients), 'package.json'))
const never = new AbortController().signal
const sorted = (pairs: Iterable<[string, string]>) => [...pairs].sort()

const aliyunClient = (name: string, port: number) => {
  const { $OpenApiUtil } = load('@alicloud/openapi-core')
  const { id: accessKeyId, secret: accessKeySecret } = aliyun.key
  const config = { accessKeyId, accessKeySecret, protocol: 'http', endpoint: `127.0.0.1:${port}` }
  return new (load(name).default)(new $OpenApiUtil.Config(config))
}

test('aliyun: SendSms as @alicloud/dysmsapi20170525 sends it', async () => {
  await withProvider(aliyun, async (provider, farEnd) => {
    const noticeId = newId()
    await provider.send({ ...aliyun.conformance.message, noticeId }, never)
    const { SendSmsRequest } = load('@alicloud/dysmsapi20170525')
    await aliyunClient('@alicloud/dysmsapi20170525', farEnd.port).sendSms(
      new SendSmsRequest({
        phoneNumbers: '13812345678',
        signName: aliyun.entry.signName,
        templateCode: 'SMS_1',
        templateParam: '{"number":"738291"}',
        outId: noticeId,
      }),
    )
    expect(farEnd.complaints).toEqual([])
    const [ours, theirs] = farEnd.requests
    expect(sorted(ours?.query ?? [])).toEqual(sorted(theirs?.query ?? []))
    for (const name of ['x-acs-action', 'x-acs-version', 'x-acs-content-sha256']) {
      expect(ours?.headers[name]).toBe(theirs?.headers[name])
    }
    expect([ours?.method, ours?.path, ours?.body]).toEqual(['POST', '/', theirs?.body])
  })
})

test('aliyun-pnvs: SendSmsVerifyCode as @alicloud/dypnsapi20170525 sends it', async () => {
  await withProvider(aliyunPnvs, async (provider, farEnd) => {
    const noticeId = newId()
    await provider.send({ ...aliyunPnvs.conformance.message, noticeId }, never)
    const { SendSmsVerifyCodeRequest } = load('@alicloud/dypnsapi20170525')
    await aliyunClient('@alicloud/dypnsapi20170525', farEnd.port).sendSmsVerifyCode(
      new SendSmsVerifyCodeRequest({
        phoneNumber: '13812345678',
        countryCode: '86',
        signName: aliyunPnvs.entry.signName,
        templateCode: '100001',
        templateParam: '{"code":"738291","min":"five"}',
        outId: noticeId,
        interval: 1,
      }),
    )
    expect(farEnd.complaints).toEqual([])
    const [ours, theirs] = farEnd.requests
    expect(sorted(ours?.query ?? [])).toEqual(sorted(theirs?.query ?? []))
    expect(ours?.headers['x-acs-action']).toBe(theirs?.headers['x-acs-action'])
  })
})

test('tencent: SendSms as tencentcloud-sdk-nodejs-sms sends it', async () => {
  await withProvider(tencent, async (provider, farEnd) => {
    const noticeId = newId()
    await provider.send({ ...tencent.conformance.message, noticeId }, never)
    const { Client } = load('tencentcloud-sdk-nodejs-sms').sms.v20210111
    const { id: secretId, secret: secretKey } = tencent.key
    // The client takes the service from the first part of the host, and signs the host without a port.
    const agent = new Agent()
    agent.createConnection = () => connect(farEnd.port, '127.0.0.1')
    const httpProfile = { endpoint: 'sms.vendor.test', protocol: 'http://', agent }
    const client = new Client({
      credential: { secretId, secretKey },
      region: 'ap-guangzhou',
      profile: { httpProfile },
    })
    await client.SendSms({
      PhoneNumberSet: ['+8618501234444'],
      SmsSdkAppId: tencent.entry.sdkAppId,
      SignName: tencent.entry.signName,
      TemplateId: '1110',
      TemplateParamSet: ['738291', '05分'],
      SessionContext: noticeId,
    })
    agent.destroy()
    expect(farEnd.complaints).toEqual([])
    const [ours, theirs] = farEnd.requests
    expect(JSON.parse(ours?.body ?? '')).toEqual(JSON.parse(theirs?.body ?? ''))
    for (const name of ['x-tc-action', 'x-tc-version', 'x-tc-region']) {
      expect(ours?.headers[name]).toBe(theirs?.headers[name])
    }
  })
})

test('twilio: a message as the package twilio creates it', async () => {
  await withProvider(twilio, async (provider, farEnd) => {
    const noticeId = newId()
    const { message } = twilio.conformance
    await provider.send({ ...message, noticeId }, never)
    const client = load('twilio')(twilio.accountSid, twilio.authToken)
    client.api.baseUrl = `http://127.0.0.1:${farEnd.port}`
    await client.messages.create({
      to: message.to,
      from: twilio.entry.from,
      body: message.text,
      statusCallback: `${twilio.entry.statusCallback}?noticeId=${noticeId}`,
    })
    expect(farEnd.complaints).toEqual([])
    const [ours, theirs] = farEnd.requests.map(({ method, path, headers, body }) => ({
      ...{ method, path, authorization: headers.authorization, type: headers['content-type'] },
      form: sorted(new URLSearchParams(body)),
    }))
    expect(ours).toEqual(theirs)
  })
})
