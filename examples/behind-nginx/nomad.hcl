# The same on Nomad: nomad job run nomad.hcl
#
# Every Nomad client has an agent of Consul already, at the address of its host. Nomad's own `service` blocks are not used:
# containerpilot registers an instance when it is healthy and takes it out before it is stopped.
job "behind-nginx" {
  datacenters = ["dc1"]

  group "app" {
    count = 2

    # One after the other, and each must have been healthy for a while.
    update {
      max_parallel     = 1
      health_check     = "task_states"
      min_healthy_time = "5s"
    }

    network {
      port "http" {}
    }

    task "app" {
      driver = "docker"

      config {
        image = "behind-nginx-app:latest"
        ports = ["http"]
      }

      # Others reach the instance at the host's address and the port that Nomad has chosen.
      env {
        CONSUL    = "${attr.unique.network.ip-address}"
        PORT      = "${NOMAD_PORT_http}"
        ADVERTISE = "static:${NOMAD_IP_http}"
      }

      # Longer than `stopTimeout` in app/containerpilot.json5.
      kill_timeout = "15s"

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }

  group "nginx" {
    network {
      port "http" {
        static = 8080
        to     = 80
      }
    }

    task "nginx" {
      driver = "docker"

      config {
        image = "behind-nginx-nginx:latest"
        ports = ["http"]
      }

      env {
        CONSUL = "${attr.unique.network.ip-address}"
      }

      kill_timeout = "25s"

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
