"""A Spark cluster of two hosts, each with one executor, on this machine."""

import os
import sys
import time
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

HOSTS = ["127.0.0.1", "127.0.0.2"]  # two, because Spark starts the second attempt of a slow task on another host


@contextmanager
def cluster(folder):
    """The address of a cluster as that of "local-cluster", with a worker for each host; it replaces lost executors."""
    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    conf = jvm.org.apache.spark.SparkConf()
    master = jvm.org.apache.spark.deploy.master.Master.startRpcEnvAndEndpoint(HOSTS[0], 0, 0, conf)._1()
    addresses = SparkContext._gateway.new_array(jvm.java.lang.String, 1)
    addresses[0] = master.address().toSparkURL()
    option = jvm.scala.Option
    workers = [
        jvm.org.apache.spark.deploy.worker.Worker.startRpcEnvAndEndpoint(
            host, 0, 0, 1, 1024, addresses, str(folder), option.apply(number), conf, option.empty()
        )
        for number, host in enumerate(HOSTS)
    ]
    try:
        yield addresses[0]
    finally:
        for environment in [*workers, master]:
            environment.shutdown()


def started(master):
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "3",
        "spark.default.parallelism": "4",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "spark.executor.memory": "900m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.shuffle.io.retryWait": "100ms",  # instead of 5 s, three times, for rows of an executor that is lost
        "spark.speculation": "true",  # a task that takes much longer than others gets a second attempt
        "spark.speculation.minTaskRuntime": "2s",
        "spark.speculation.quantile": "0.5",
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def has_executors(session):
    """Whether executors register within a minute; Spark itself would wait for them forever."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() > len(HOSTS):  # the driver is one of them
            return True
        time.sleep(0.1)
    return False
