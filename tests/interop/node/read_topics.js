"use strict";
// Reads topics from their start and prints each record, as ../python/read_topics.py does: CLIENT ADDRESS COUNT TOPIC...

const PATIENCE_MS = 15000;

function show(topic, offset, type, timestamp, key, value) {
  const hex = (data) => (data === null || data === undefined ? "-" : Buffer.from(data).toString("hex"));
  console.log([topic, offset, type, timestamp, hex(key), hex(value)].join("\t"));
}

function patient(promise) {
  return Promise.race([promise, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
}

async function withKafkajs(address, count, topics) {
  const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require("kafkajs");
  const LZ4 = require("kafkajs-lz4");
  CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
  CompressionCodecs[CompressionTypes.LZ4] = new (LZ4.default || LZ4)().codec;
  const kafka = new Kafka({ clientId: "reader", brokers: [address], logLevel: logLevel.NOTHING });
  for (const topic of topics) {
    const consumer = kafka.consumer({ groupId: `reader-${topic}` });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    let got = 0;
    await patient(
      new Promise((resolve) => {
        consumer.run({
          autoCommit: false,
          eachMessage: async ({ message }) => {
            show(topic, message.offset, 0, message.timestamp, message.key, message.value);
            if (++got >= count) resolve();
          },
        });
      }),
    );
    await consumer.disconnect();
  }
}

async function withPlatformatic(address, count, topics) {
  const { Consumer } = await import("@platformatic/kafka");
  for (const topic of topics) {
    const consumer = new Consumer({ groupId: `reader-${topic}`, clientId: "reader", bootstrapBrokers: [address] });
    const stream = await consumer.consume({ topics: [topic], mode: "earliest", autocommit: false });
    let got = 0;
    await patient(
      new Promise((resolve, reject) => {
        stream.on("error", reject);
        stream.on("data", (one) => {
          show(topic, one.offset, 0, one.timestamp, one.key, one.value);
          if (++got >= count) resolve();
        });
      }),
    ).catch((error) => console.error(topic, error));
    await consumer.close(true);
  }
}

const [client, address, count, ...topics] = process.argv.slice(2);
const read = client === "kafkajs" ? withKafkajs : withPlatformatic;
read(address, Number(count), topics)
  .catch((error) => console.error(error))
  .finally(() => process.exit());
